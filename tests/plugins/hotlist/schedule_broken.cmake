# Each way in which a ring could be wrong that has hurt somebody, and the schedules that see it.

# broken_schedule(<name> <file of the plugin> <from> <to> <test> ...)
function(broken_schedule name source from to)
  queen_broken_copy(hotlist_${name} TEST_OBJECTS queen_schedule_directed SOURCE plugins/hotlist/${source}
    FROM "${from}" TO "${to}" FAILS ${ARGN} DEPENDS queen_schedule_world hotlist_class LABELS unit)
endfunction()

# broken_schedules(<name> <file of the plugin> <from> <to> <property>): the seeded scheduler finds it.
function(broken_schedules name source from to property)
  queen_broken_copy(hotlist_${name} TEST_OBJECTS queen_hotlist_schedule_property SOURCE plugins/hotlist/${source}
    FROM "${from}" TO "${to}" FAILS HotListProperty.${property}
    DEPENDS queen_schedule_world hotlist_class rapidcheck LABELS property
    ENVIRONMENT "RC_PARAMS=max_success=60000 max_size=150 max_discard_ratio=100 noshrink=1")
  set_tests_properties(broken_copy.hotlist_${name}.HotListProperty.${property} PROPERTIES
    PASS_REGULAR_EXPRESSION "Falsifiable after")
endfunction()

# ---- leases and releases ----

broken_schedule(parks_for_the_whole_lease sub_ring.cpp
  "const SteadyTime cap = now + kMostLeasePark;" "const SteadyTime cap = SteadyTime::max();"
  HotListSchedule.F1_ALeasedVerdictThatArrivesAfterTheReleaseCostsASecondNotTheLease)
broken_schedule(clears_by_marks_alone sub_ring.cpp
  "covered && one.batch == 0 && one.drained" "covered && one.batch == 0"
  HotListSchedule.F2_ABacklogIsConsumedInBatchesWithoutAGap
  HotListSchedule.Hl2_WhatAnOlderClaimDrainedSaysNothingOfThisOne)
broken_schedule(clears_whatever_was_marked sub_ring.cpp
  "covered && one.batch == 0 && one.drained" "covered && one.drained"
  HotListSchedule.Hl5_APushDuringTheLeaseMakesTheCoveredReleaseAPromotion
  HotListSchedule.Cl14_APushBetweenTheLookAndTheScanOutlivesADrainedClaim)
broken_schedule(promotes_no_nack sub_ring.cpp
  "            make_ready(local, now, 0, order); // the store still enforces delay and window
            ready = true;"
  "            if (covered) {
                make_ready(local, now, 0, order);
                ready = true;
            }"
  HotListSchedule.F3_APureNackIsRedeliveredAtOnceAndWakes)
broken_schedule(promotes_what_is_drained sub_ring.cpp
  "covered && one.batch == 0 && one.drained" "false"
  HotListSchedule.F4_ACoveredAckOfADrainedPartitionCausesNoClaimAndNoWake)
broken_schedule(clears_what_is_leased sub_ring.cpp
  "park(local, lease_park(verdict.until, now, rules)); // never cleared" "clear(one);"
  HotListSchedule.F5_APartitionWhoseRowWasLockedIsFoundAgain
  HotListSchedule.F1_ALeasedVerdictThatArrivesAfterTheReleaseCostsASecondNotTheLease)
broken_schedule(keeps_what_a_dying_pop_held sub_ring.cpp
  "make_ready(local, now, one.held_ms, order); // what matured stays so" ""
  HotListSchedule.F6_WhatADyingPopHeldIsOfferedAtOnce)
broken_schedule(takes_pushes_during_a_claim_for_served sub_ring.cpp
  "        if (quiet) {
            one.batch = 0;"
  "        {
            one.batch = 0;"
  HotListSchedule.Hl3_APushDuringTheClaimIsNotCountedAsServed)
broken_schedule(remembers_what_was_drained sub_ring.cpp
  "        one.drained = false;
        ++one.visit;"
  "        ++one.visit;"
  HotListSchedule.Hl2_WhatAnOlderClaimDrainedSaysNothingOfThisOne)
broken_schedule(clears_after_auto_ack sub_ring.cpp
  "            make_ready(local, now, 0, order);
        }
        break;
    case VerdictKind::empty:"
  "            clear(one);
        }
        break;
    case VerdictKind::empty:"
  HotListSchedule.Hl4_AutoAckGoesOnThroughABacklog)
broken_schedule(loses_a_release_during_a_claim sub_ring.cpp
  "++one.epoch; // whoever has it out must not clear it" ""
  HotListSchedule.Hl5_AReleaseDuringAClaimVoidsItsEmptyVerdict)
broken_schedule(promotes_no_nack_of_what_is_idle sub_ring.cpp
  "        if (!covered) {
            one.first_mark"
  "        if (false) {
            one.first_mark"
  HotListSchedule.F3_ANackIsRedeliveredAlthoughAnOlderReleaseCameLate)
broken_schedule(takes_another_lease_for_its_own sub_ring.cpp
  "one.drained && count(now) <= one.lease_end" "one.drained"
  HotListSchedule.F2_ACoveredReleaseOfALaterLeaseHidesNoBacklog
  HotListSchedule.F2_ADrainedVerdictThatArrivesAfterItsLeaseHidesNoBacklog)
broken_schedule(wakes_nobody_by_a_release hotlist.cpp
  "        impl_->wake(*ring, 1);" ""
  HotListSchedule.F3_APureNackIsRedeliveredAtOnceAndWakes)
broken_schedule(forgets_what_a_scan_found hotlist.cpp
  "ring.found(indices[i], *found[i], now, rules);" ""
  ColdHotListSchedule.WhatAScanTookIsPromotedWhenItIsReleased)

# ---- marks and clears ----

broken_schedule(ignores_the_epoch sub_ring.cpp
  "const bool quiet = one.epoch == entry.epoch;" "const bool quiet = true;"
  HotListSchedule.AMarkDuringAClaimVoidsItsEmptyVerdict
  HotListSchedule.Hl5_AReleaseDuringAClaimVoidsItsEmptyVerdict)
broken_schedule(raises_no_epoch_in_flight sub_ring.cpp
  "        ++one.epoch;
        // A ready"
  "        one.epoch += one.state == State::in_flight ? 0 : 1;
        // A ready"
  HotListSchedule.AMarkDuringAClaimVoidsItsEmptyVerdict)
broken_schedule(never_clears sub_ring.cpp
  "        clear(one);
    } else if (rules.delay.count() > 0) {"
  "        make_ready(local, now, 0, order);
    } else if (rules.delay.count() > 0) {"
  HotListSchedule.AnEmptyVerdictWithoutAMarkSinceClears
  HotListSchedule.AMarkThatComesLateCostsOneEmptyClaim)
broken_schedule(takes_more_than_the_batch_needs sub_ring.cpp
  "wanted.messages -= std::min<std::uint64_t>(wanted.messages, thought(one));" ""
  HotListSchedule.F52_PopsOnManyPartitionsAtOnceAllGetWork)

# ---- the floor ----

broken_schedule(settles_what_the_floor_linked_again sub_ring.cpp
  "if (one.state != State::in_flight || one.visit != entry.visit) {"
  "if (one.state == State::ready) {
        unlink_head();
    } else if (one.state != State::in_flight || one.visit != entry.visit) {"
  HotListSchedule.Hl8_ASettleLeavesAloneWhatTheFloorHasLinkedAgain)
broken_schedule(settles_what_another_pop_has sub_ring.cpp
  "if (one.state != State::in_flight || one.visit != entry.visit) {"
  "if (one.state != State::in_flight) {"
  HotListSchedule.Hl8_NorWhatAnotherPopHasCheckedOutSince)
broken_schedule(leaves_the_stranded sub_ring.cpp
  "        case State::in_flight: // its pop may be gone for good (F-6)
"
  ""
  HotListSchedule.F6_WhatNobodySettlesIsOfferedAgainByTheFloor)
broken_schedule(believes_the_wheel_over_the_floor sub_ring.cpp
  "if (!rules.deferred()) { // its lease may have been released early" "if (false) {"
  HotListSchedule.Hl9_TheFloorSeesALeaseThatEndedElsewhere)
broken_schedule(shortens_delays_by_the_floor sub_ring.cpp
  "if (!rules.deferred()) { // its lease may have been released early" "if (true) {"
  HotListSchedule.Hl9_TheFloorShortensNoDelay)
broken_schedule(delays_again_what_a_walk_found sub_ring.cpp
  "            make_ready(local, now, 0, order);
            ++made_ready;
            break;
        case State::wheel:"
  "            park(local, now + rules.delay);
            break;
        case State::wheel:"
  HotListSchedule.Hl9_WhatAWalkFindsOnADelayedQueueMayHaveWaitedLongEnough)
broken_schedule(waits_for_a_time_that_was_longer hotlist.cpp
  "ring.hasten(impl_->clock.now());" ""
  HotListSchedule.WhatWaitsIsLookedAtWhenItsTimeBecomesShorter)
broken_schedule(wakes_nobody_by_the_floor hotlist.cpp
  "impl_->wake(*ring, made_ready);" ""
  HotListSchedule.TheFloorFindsAndWakesForWhatNoMarkTold)
broken_schedule(credits_a_new_ring_with_an_old_walk floor.cpp
  "!walk_ || walk_->ticket != ticket" "!walk_"
  ColdHotListSchedule.Hl12_AWalkOfARingThatWasReplacedDoesNotCountForTheNewOne)
broken_schedule(is_warm_after_a_failed_walk floor.cpp
  "// A full walk stays due: its clock did not move." "warm_.store(true);"
  ColdHotListSchedule.AFailedFirstWalkLeavesTheRingCold)
broken_schedule(never_walks_whole_again floor.cpp
  "now >= last_full_ + intervals_.reseed_full + jitter_" "false"
  HotListScheduleOfALargeQueue.IsWalkedInPartOftenAndWholeSometimes)
broken_schedule(walks_all_rings_at_once floor.cpp
  "spread % static_cast<std::uint64_t>(most.count())" "0"
  HotListSchedule.RingsDoNotAskForTheirFloorsAllAtOnce)

# ---- delay, window, ticks ----

broken_schedule(revisits_ghosts_for_ever sub_ring.cpp
  "!rules.deferred() || taken_at >= ghost_at" "!rules.deferred()"
  HotListSchedule.F7_AGhostOfADelayedQueueStopsBeingClaimed)
broken_schedule(judges_ghosts_when_verdicts_arrive sub_ring.cpp
  "taken_at >= ghost_at" "now >= ghost_at"
  HotListSchedule.Hl10_AVerdictSpeaksOfWhenItsPopSetOutHoweverLateItArrives)
broken_schedule(takes_a_delayed_push_for_a_ghost sub_ring.cpp
  "        one.last_news = count(now);
        one.walked = false;"
  "        if (one.state == State::idle) {
            one.last_news = count(now);
        }
        one.walked = false;"
  HotListSchedule.Hl10_WhatIsStillDelayedIsNoGhost)
broken_schedule(vouches_for_windows_of_long_ago sub_ring.cpp
  "const bool held = rules.config_fresh && " "const bool held = "
  HotListSchedule.AWindowIsVouchedForOnlyWhileItsConfigurationIsFresh)
broken_schedule(vouches_for_whatever_comes_along sub_ring.cpp
  "} else if (held != wanted.held) {" "} else if (false) {"
  HotListSchedule.AWindowIsVouchedForOfAllItsNamesOrOfNone)
broken_schedule(wakes_nobody_by_a_tick hotlist.cpp
  "        wake(*ring, ready);" ""
  HotListSchedule.AnExpiredLeaseIsFoundByWhoeverSleeps
  HotListSchedule.ADelayedPartitionIsFoundByWhoeverSleeps)
broken_schedule(asks_for_no_tick hotlist.cpp
  "host.tick_at(*tick);" ""
  HotListSchedule.AnExpiredLeaseIsFoundByWhoeverSleeps)

# ---- what is kept, and whose it is ----

broken_schedule(trims_nothing hotlist.cpp
  "queues.trim(*ring, now - options.unserved_trim, agenda)" "false"
  ForgetfulHotList.F46_WhatNobodyPopsIsNotKept)
broken_schedule(trims_what_is_looked_at queue_map.cpp
  "return ring.last_served() > unserved_since;" "return false;"
  ForgetfulHotList.F47_ABacklogOfASlowConsumerIsKeptHoweverOld)
broken_schedule(trims_what_is_checked_out queue_map.cpp
  "ring.depth(unserved_since).in_flight > 0" "false"
  ForgetfulHotList.Hl16_WhatIsCheckedOutIsNotTrimmed)
broken_schedule(gives_no_second_chance hotlist.cpp
  "const bool touched = static_cast<TrackedQueue&>(*item).take_touch();"
  "const bool touched = (static_cast<TrackedQueue&>(*item).take_touch(), false);"
  ForgetfulHotList.F48_AQueueThatSomebodyTouchedInBetweenIsNotSwept)
broken_schedule(sweeps_what_is_ready queue_map.cpp
  "if (!ring->depth(SteadyTime::min()).idle()) {" "if (false) {"
  ForgetfulHotList.F48_AQueueWithSomethingInItIsNotSwept)
broken_schedule(forgets_for_every_tenant queue_map.cpp
  "if (at->second.queue->facts->tenant == tenant) {" "if (true) {"
  HotListSchedule.Hl22_ForgettingAGroupOfOneTenantLeavesTheOtherAlone)

# ---- the store's side: a row skipped because it is locked must not be told to be empty ----

queen_broken_copy(hotlist_store_says_locked_is_empty TEST_OBJECTS queen_schedule_directed
  SOURCE tests/plugins/hotlist/schedule_store.cpp
  FROM "answer.found = Found::leased; // not empty: it has something (CL-12)" TO ""
  FAILS HotListSchedule.F5_APartitionWhoseRowWasLockedIsFoundAgain
  DEPENDS queen_schedule_world hotlist_class LABELS unit)

# ---- what the seeded scheduler finds by itself ----

broken_schedules(any_epoch_clears sub_ring.cpp
  "const bool quiet = one.epoch == entry.epoch;" "const bool quiet = true;"
  NoMarkedPartitionIsLostWithoutAFloor)
broken_schedules(dying_pops_keep sub_ring.cpp
  "make_ready(local, now, one.held_ms, order); // what matured stays so" "clear(one);"
  NoMarkedPartitionIsLostWithoutAFloor)
broken_schedules(covered_clears_marks sub_ring.cpp
  "covered && one.batch == 0 && one.drained" "covered && one.drained"
  NoMarkedPartitionIsLostWithoutAFloor)
broken_schedules(covered_clears_backlogs sub_ring.cpp
  "covered && one.batch == 0 && one.drained" "covered && one.batch == 0"
  NoMarkedPartitionIsLostWithoutAFloor)
broken_schedules(nacks_promote_nothing sub_ring.cpp
  "            make_ready(local, now, 0, order); // the store still enforces delay and window
            ready = true;"
  "            if (covered) {
                make_ready(local, now, 0, order);
                ready = true;
            }"
  NoMarkedPartitionIsLostWithoutAFloor)
broken_schedules(leases_park_for_good sub_ring.cpp
  "const SteadyTime cap = now + kMostLeasePark;" "const SteadyTime cap = SteadyTime::max();"
  NoMarkedPartitionIsLostWithoutAFloor)
broken_schedules(ghosts_stay sub_ring.cpp
  "!rules.deferred() || taken_at >= ghost_at" "!rules.deferred()"
  NoMarkedPartitionIsLostWithoutAFloor)
broken_schedules(ticks_wake_nobody hotlist.cpp
  "        wake(*ring, ready);" ""
  SleepersAreToldOfAllThatBecomesReady)
broken_schedules(no_tick_is_asked_for hotlist.cpp
  "host.tick_at(*tick);" ""
  SleepersAreToldOfAllThatBecomesReady)
broken_schedules(the_stranded_stay sub_ring.cpp
  "        case State::in_flight: // its pop may be gone for good (F-6)
"
  ""
  NothingStaysUnreachablePastOneFloor)
broken_schedules(the_floor_wakes_nobody hotlist.cpp
  "impl_->wake(*ring, made_ready);" ""
  NothingStaysAsleepPastOneFloor)
broken_schedules(a_look_drains hotlist.cpp
  "        const Ring::Depth depth = ring->depth(now);"
  "        ring->drain(now);
        const Ring::Depth depth = ring->depth(now);"
  LookingChangesNothing)
broken_schedules(a_look_offers_what_is_not_there hotlist.cpp
  "found.partitions > 0 ? ReadyState::ready : ReadyState::nothing" "ReadyState::ready"
  PeekAndTakeAgree)
broken_schedules(no_queue_is_swept hotlist.cpp
  "if (!touched && queues.sweep(facts->key, queue, agenda)) {"
  "if (false) {"
  WhatNobodyUsesVanishes)

# ---- and what the threads do in the end: what nobody gave back stays undelivered ----

queen_broken_copy(hotlist_leaves_the_stranded_to_the_threads TEST_OBJECTS queen_schedule_stress
  SOURCE plugins/hotlist/sub_ring.cpp
  FROM "        case State::in_flight: // its pop may be gone for good (F-6)
"
  TO ""
  FAILS HotListStress.EverythingIsDeliveredOnceWithThreadsThatDie
  DEPENDS queen_schedule_world hotlist_class LABELS slow)
