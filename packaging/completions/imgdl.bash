# bash completion for imgdl(1)
_imgdl() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    # bash breaks words at =.
    if [[ $current == = ]]; then
        current=
    elif [[ $previous == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    case $previous in
    -i | --input | -o | --output | --journal | --cacert | --crlfile)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        ;;
    --cache)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -d -- "$current")
        ;;
    --show)
        if [[ ${COMP_WORDS[COMP_CWORD - 1]} == = || ${COMP_WORDS[COMP_CWORD]} == = ]]; then
            mapfile -t COMPREPLY < <(compgen -W 'auto kitty blocks blocks256' -- "$current")
        fi
        ;;
    -j | --jobs | --per-host | --retries | --timeout | --max-size | --max-stale | -H | --header | -A | --user-agent | \
        --background | --width | --height | --max-decode | --proxy | --dns-servers) ;;
    *)
        if [[ $current == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W '--input --output --show --background --json --full-urls --journal --jobs
                --per-host --retries --timeout --max-size --header --user-agent --cacert --crlfile --tlsv1.3 --proxy --dns-servers
                --deny-private --max-decode --basic-over-http --cache --max-stale --verify --width --height --quiet
                --verbose --help --version' -- "$current")
        fi
        ;;
    esac
}
complete -F _imgdl imgdl
