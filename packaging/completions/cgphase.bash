# bash completion for cgphase(1). The command answers; an empty line means names of files.
# shellcheck shell=bash

_cgphase() {
  local word=${COMP_WORDS[COMP_CWORD]} line files=no
  [ "$word" != = ] || word=  # --color=
  COMPREPLY=()
  while IFS= read -r line; do
    [ -n "$line" ] || files=yes
    line=${line%%$'\t'*}
    # Names are foreign text: the shell must not expand them (as compgen -W would).
    [[ -z $line || $line != "$word"* ]] || COMPREPLY+=("$(printf %q "$line")")
    [[ $line != *= ]] || compopt -o nospace
  done < <(cgphase __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  # Without candidates bash completes names of files itself.
  [[ $files == no || ${#COMPREPLY[@]} == 0 ]] || while IFS= read -r line; do
    COMPREPLY+=("$(printf %q "$line")")
  done < <(compgen -f -- "$word")
}
complete -o default -F _cgphase cgphase
