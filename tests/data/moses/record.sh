#!/bin/sh
# Records what the real Moses programs write for the first sentences of the demo system.
# usage: MOSES_HOME=/path/to/moses sh tests/data/moses/record.sh OUTPUT_DIRECTORY
# MOSES_HOME holds bin/ (moses, mert, kbmira, pro, extractor, evaluator, sentence-bleu, hgdecode) and
# scripts/ (training/mert-moses.pl). The commands run in /tmp/demo, since their output names files.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/../../.." && pwd)
output=$1
bin=/tmp/demo/moses/bin  # output names this path, too
mkdir -p "$output"
output=$(CDPATH= cd -- "$output" && pwd)
mkdir /tmp/demo
ln -s "$MOSES_HOME" /tmp/demo/moses
trap "rm -r /tmp/demo" EXIT
cd /tmp/demo
demo=$root/moses-config/demo
for name in lm.arpa.gz phrase-table.gz reordering-table.gz; do
    cp "$demo/$name" .
done
sed -E 's#path=#path=/tmp/demo/#' "$demo/moses.ini" > moses.ini
head -n 12 "$demo/tune.tarvian" > input
head -n 12 "$demo/tune.english" > reference
mv_gz() { gzip -9 -n -c "$1" > "$2"; }

cp input reference moses.ini "$output/"

# Two iterations of the tuning script.
perl "/tmp/demo/moses/scripts/training/mert-moses.pl" /tmp/demo/input /tmp/demo/reference "$bin/moses" /tmp/demo/moses.ini \
    --mertdir "$bin" --rootdir "/tmp/demo/moses/scripts" --no-filter-phrase-table \
    --working-dir /tmp/demo/mert-work --nbest 20 --maximum-iterations 2 --predictable-seeds \
    --decoder-flags "-threads 1 -v 0" > mert.log 2>&1
mkdir -p "$output/script"
for name in features.list finished_step.txt run1.dense run1.moses.ini run1.out run1.best20.out.gz \
    run1.init.opt run1.weights.txt run2.dense run2.best20.out.gz run2.out \
    run2.init.opt run2.weights.txt moses.ini; do
    [ ! -f "mert-work/$name" ] || cp "mert-work/$name" "$output/script/"
done

# extractor: features and statistics by each metric, as text and in binary.
nbest=mert-work/run1.best20.out.gz
for metric in BLEU PER WER CDER TER; do
    "$bin/extractor" --sctype $metric --scconfig case:true --reference reference --nbest "$nbest" \
        --ffile features.dat --scfile scores.$metric.dat 2> /dev/null
    mv_gz scores.$metric.dat "$output/scores.$metric.dat.gz"
done
mv_gz features.dat "$output/features.dat.gz"
"$bin/extractor" --sctype BLEU,TER --scconfig weights:0.6+0.4 --reference reference \
    --nbest "$nbest" --ffile features.dat --scfile scores.dat 2> /dev/null
mv_gz scores.dat "$output/scores.BLEU+TER.dat.gz"
"$bin/extractor" -b --sctype BLEU --scconfig case:true --reference reference --nbest "$nbest" \
    --ffile features.bin --scfile scores.bin 2> /dev/null
mv_gz features.bin "$output/features.bin.gz"
mv_gz scores.bin "$output/scores.bin.gz"

# evaluator and sentence-bleu.
for metric in BLEU PER WER CDER TER; do
    echo "$metric $("$bin/evaluator" --sctype $metric --reference reference \
        --candidate mert-work/run1.out 2> /dev/null)"
done > "$output/evaluator.txt"
"$bin/sentence-bleu" reference < mert-work/run1.out > "$output/sentence-bleu.txt"

# mert, pro: the first list.
cp mert-work/run1.init.opt init.opt
dimension=$(head -n 1 init.opt | wc -w)
"$bin/extractor" --sctype BLEU --scconfig case:true --reference reference --nbest "$nbest" \
    --ffile run1.features.dat --scfile run1.scores.dat 2> /dev/null
"$bin/mert" -d "$dimension" --scconfig case:true --ffile run1.features.dat \
    --scfile run1.scores.dat --ifile init.opt -n 5 -r 1000 > mert.out 2> mert.log
cp weights.txt "$output/mert.weights.txt"
grep "Best point" mert.log > "$output/mert.best"
"$bin/pro" --ffile run1.features.dat --scfile run1.scores.dat -r 1000 -o pro.dat 2> /dev/null
mv_gz pro.dat "$output/pro.dat.gz"

# kbmira on lists is not recorded: as Moses ships it, it drops hypotheses that share a bucket of its
# hash table, and learns from what is left.

# Search graphs of short sentences; hgdecode, and hypergraph MIRA.
awk 'NF <= 9' input | head -n 4 > short.input
awk 'NR == FNR { n[NR] = NF; next } n[FNR] <= 9' input reference | head -n 4 > short.reference
"$bin/moses" -config moses.ini -input-file short.input -threads 1 -v 0 -s 20 \
    -output-search-graph-hypergraph true gz hypergraph -n-best-list short.nbest 20 distinct \
    > short.out 2> short.err
mkdir -p "$output/graphs"
cp hypergraph/* "$output/graphs/"
cp short.reference "$output/graphs.reference"
mv_gz short.nbest "$output/graphs.nbest.gz"
for graph in hypergraph/*.gz; do
    "$bin/hgdecode" --hypergraph "$graph" --dense-init mert-work/run1.dense 2> /dev/null
done > "$output/hgdecode.txt"
"$bin/kbmira" --type hypergraph --hgdir hypergraph --reference short.reference \
    --dense-init mert-work/run1.dense --no-shuffle -J 3 -r 1 -o kbmira.weights --verbose \
    > kbmira.log 2>&1
cp kbmira.weights "$output/kbmira.graphs.weights"
cp kbmira.log "$output/kbmira.graphs.log"
