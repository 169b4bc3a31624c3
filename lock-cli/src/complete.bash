# bash splits what is typed at : and = as well (COMP_WORDBREAKS), as in --store sqlite:/x. Here, what has
# no blank between is one word.
_distlock() {
    local IFS=$'\013' rest=${COMP_LINE:0:COMP_POINT} word piece before
    local -a words=()
    for piece in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        word=${rest#"${rest%%[![:space:]]*}"}
        # The cursor may stand within the last one.
        [[ $word == "$piece"* ]] || piece=$word
        if [[ $word != "$rest" || ${#words[@]} -eq 0 ]]; then
            words+=("$piece")
        else
            words[${#words[@]} - 1]+=$piece
        fi
        rest=${word#"$piece"}
    done
    local last=$((${#words[@]} - 1)) i
    for ((i = 0; i < last; i++)); do
        case ${words[i]} in
            \'*\' | \"*\") words[i]=${words[i]:1:${#words[i]}-2} ;;
        esac
    done
    words[last]=${words[last]#[\'\"]}
    COMPREPLY=($(
        _CLAP_IFS=$IFS _CLAP_COMPLETE_INDEX=$last _CLAP_COMPLETE_COMP_TYPE=$COMP_TYPE \
            _CLAP_COMPLETE_SPACE=false VARIABLE=bash distlock -- "${words[@]}"
    )) || COMPREPLY=()
    # bash puts a candidate in the place of the last piece only.
    before=${words[last]%"$2"}
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
    [[ ${COMPREPLY-} == *[=/:] ]] || compopt +o nospace 2> /dev/null
}
# Before bash 4.4 they are sorted.
complete -o nospace -o bashdefault -o nosort -F _distlock distlock 2> /dev/null ||
    complete -o nospace -o bashdefault -F _distlock distlock
