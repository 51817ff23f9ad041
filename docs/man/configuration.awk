# agent/config/default_config.toml as a part of cgphase.toml(5), in scdoc's language: a comment says what a
# key means, "Allowed:" what it may be, and "#key = value" is the key at its default.
function plain(text) {
  gsub(/\\/, "\\\\", text)
  gsub(/[_*]/, "\\\\&", text)
  gsub(/`/, "", text)
  return text
}
BEGIN { print "# KEYS\n" }
/^\[/ { print "# SECTION " toupper(substr($0, 2, index($0, "]") - 2)) "\n"; section = substr($0, 2, index($0, "]") - 2) "."; next }
/^# Allowed: / { allowed = substr($0, 12); next }
/^# / { meaning = substr($0, 3); next }
/^#[a-z]/ {
  key = substr($0, 2, index($0, " =") - 2)
  value = substr($0, index($0, "= ") + 2)
  printf "*%s*\n\t%s++\nAllowed: %s++\nDefault: %s\n\n", plain(section key), plain(meaning), plain(allowed), plain(value)
}
