# cmake -DOUTPUT=x.cpp -DFILES="a.sql;b.sql" -P embed_sql.cmake
# Writes the files as string literals. A raw literal must not contain its own end; that is checked.
set(entries "")
string(REPLACE "|" ";" FILES "${FILES}")
file(WRITE "${OUTPUT}.new" "// Made from sql/*.sql by core/store/embed_sql.cmake; do not edit.
#include \"store/embedded_sql.hpp\"

namespace queen::store {
namespace {
")
set(index 0)
foreach(path IN LISTS FILES)
  get_filename_component(name "${path}" NAME)
  file(READ "${path}" text)
  string(FIND "${text}" ")queen_sql\"" found)
  if(NOT found EQUAL -1)
    message(FATAL_ERROR "${path} holds the end mark of a raw literal")
  endif()
  file(APPEND "${OUTPUT}.new" "constexpr std::string_view kText${index} = R\"queen_sql(")
  file(APPEND "${OUTPUT}.new" "${text}")
  file(APPEND "${OUTPUT}.new" ")queen_sql\";\n")
  string(APPEND entries "    {\"${name}\", kText${index}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(APPEND "${OUTPUT}.new" "constexpr SqlFile kFiles[] = {\n${entries}    {{}, {}}, // an array has at least one element
};

} // namespace

std::span<const SqlFile> embedded_sql() { return {kFiles, ${index}}; }

} // namespace queen::store
")
file(RENAME "${OUTPUT}.new" "${OUTPUT}")
