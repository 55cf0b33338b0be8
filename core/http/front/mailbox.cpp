#include "http/front/mailbox.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

namespace queen::http {

Mailbox::Mailbox(const Clock& clock)
    : clock_(clock), event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Mailbox::~Mailbox() {
    if (event_ >= 0) {
        ::close(event_);
    }
}

void Mailbox::adopt_thread(std::thread::id reader) {
    const std::lock_guard lock(mutex_);
    reader_ = reader;
}

bool Mailbox::post(Message& message) {
    {
        const std::lock_guard lock(mutex_);
        if (closed_) {
            return false;
        }
        mail_.push_back(std::move(message));
        if (signalled_ || std::this_thread::get_id() == reader_) {
            return true;
        }
        signalled_ = true;
        signalled_at_ = clock_.now(); // one reading for all that come until the reader does
    }
    ::eventfd_write(event_, 1);
    return true;
}

void Mailbox::wake() {
    ::eventfd_write(event_, 1);
}

std::optional<Nanoseconds> Mailbox::take(std::vector<Message>& out) {
    const std::lock_guard lock(mutex_);
    // Reading may miss a write that a poster is about to make; that one only wakes us for nothing.
    eventfd_t count = 0;
    ::eventfd_read(event_, &count);
    std::optional<Nanoseconds> waited;
    if (std::exchange(signalled_, false)) {
        waited = clock_.now() - signalled_at_;
    }
    if (out.empty()) {
        out.swap(mail_);
    } else {
        std::move(mail_.begin(), mail_.end(), std::back_inserter(out));
        mail_.clear();
    }
    return waited;
}

bool Mailbox::empty() const {
    const std::lock_guard lock(mutex_);
    return mail_.empty();
}

void Mailbox::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
}

MailedExchange::MailedExchange(std::shared_ptr<Mailbox> mailbox, ConnectionId connection,
                               std::uint64_t request, std::size_t charge)
    : mailbox_(std::move(mailbox)), connection_(connection), request_(request), charge_(charge) {}

MailedExchange::~MailedExchange() {
    if (!answered_.load(std::memory_order_relaxed)) {
        Message dropped = message(Message::Kind::dropped, {});
        mailbox_->post(dropped);
    }
}

void MailedExchange::reply(Reply reply, std::function<void()> undelivered) {
    const bool second = answered_.exchange(true, std::memory_order_acq_rel);
    if (second && !undelivered) {
        return;
    }
    Message mail =
        message(second ? Message::Kind::run : Message::Kind::answer, std::move(undelivered));
    mail.reply = std::move(reply);
    post_or_run(std::move(mail));
}

void MailedExchange::watch(std::function<void()> on_gone) {
    if (on_gone && !answered_.load(std::memory_order_acquire)) {
        post_or_run(message(Message::Kind::watch, std::move(on_gone)));
    }
}

Message MailedExchange::message(Message::Kind kind, std::function<void()> callback) const {
    Message mail;
    mail.kind = kind;
    mail.connection = connection_;
    mail.request = request_;
    mail.charge = kind == Message::Kind::answer || kind == Message::Kind::dropped ? charge_ : 0;
    mail.callback = std::move(callback);
    return mail;
}

void MailedExchange::post_or_run(Message message) {
    if (!mailbox_->post(message)) {
        set_gone(); // the front ended, and every connection with it
        if (message.callback) {
            message.callback();
        }
    }
}

} // namespace queen::http
