# written by release/completion.py
[ -z "$ZSH_VERSION" ] || { autoload -U +X compinit bashcompinit; compinit; bashcompinit; }
_tcgpu() {
    local words="" current="${COMP_WORDS[COMP_CWORD]}"
    case "${COMP_WORDS[COMP_CWORD-1]}" in
    --method|--methods|--against) words="naive column_block bitmap report_auto bitmap_thread bitmap_warp bitmap_block_shared bitmap_block_global bitmap_auto merge_path thread_search warp_search levels adaptive cpu" ;;
    --engine) words="gpu webgpu sim cpu" ;;
    --order) words="natural degree bfs random auto" ;;
    --format|--from|--to) words="mtx edges metis npz npy parquet folder" ;;
    *) case "${COMP_WORDS[1]} $current" in
        "count -"*) words="-h --help --progress --format --base --n --relabel --no-relabel --columns --max-seconds --json --method --order --knob --engine --device-memory --resume --executor --per-vertex --approximate --seed" ;;
        "clustering -"*) words="-h --help --progress --format --base --n --relabel --no-relabel --columns --max-seconds --json --method --engine --order --average" ;;
        "transitivity -"*) words="-h --help --progress --format --base --n --relabel --no-relabel --columns --max-seconds --json --method --engine --order" ;;
        "support -"*) words="-h --help --progress --format --base --n --relabel --no-relabel --columns --max-seconds --json --method --engine --order" ;;
        "motifs -"*) words="-h --help --progress --format --base --n --relabel --no-relabel --columns --max-seconds --json --engine --all" ;;
        "cliques -"*) words="-h --help --progress --format --base --n --relabel --no-relabel --columns --max-seconds --json --engine --k --kind" ;;
        "list -"*) words="-h --help --progress --format --base --n --relabel --no-relabel --columns --max-seconds --json --engine" ;;
        "truss -"*) words="-h --help --progress --format --base --n --relabel --no-relabel --columns --max-seconds --json --engine --to --k -o --output" ;;
        "info -"*) words="-h --help --progress --format --base --n --relabel --no-relabel --columns --json" ;;
        "methods -"*) words="-h --help --progress --json" ;;
        "devices -"*) words="-h --help --progress --json" ;;
        "generate -"*) words="-h --help --progress --to --seed -o --output" ;;
        "convert -"*) words="-h --help --progress --from --base --n --relabel --no-relabel --columns --to" ;;
        "fetch -"*) words="-h --help --progress --json --list" ;;
        "bench -"*) words="-h --help --progress --format --base --n --relabel --no-relabel --columns --max-seconds --json --methods --engine --repeats -o --output" ;;
        "check -"*) words="-h --help --progress --json --order --knob --against --engine" ;;
        "warm -"*) words="-h --help --progress" ;;
        "reproduce -"*) words="-h --help --progress --minutes --engine --into --check" ;;
        "completion -"*) words="-h --help --progress" ;;
        "trace -"*) words="-h --help --progress --format --base --n --relabel --no-relabel --columns --max-seconds --json --gpu --order --knob --method --open --by -o --output" ;;
        "estimate -"*) words="-h --help --progress --format --base --n --relabel --no-relabel --columns --json --gpu --order --knob --method --fill" ;;
        "$current $current") words="count clustering transitivity support motifs cliques list truss info methods devices generate convert fetch bench check warm reproduce completion trace estimate" ;;
        esac ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _tcgpu tcgpu
