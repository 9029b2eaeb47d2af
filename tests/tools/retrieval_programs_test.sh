#!/usr/bin/env bash
# Runs gle-embed, gle-eval and gle-search as users do: results, messages, exit codes, and going on after a stop.
#   retrieval_programs_test.sh FOLDER_OF_PROGRAMS DATA_FOLDER
set -euo pipefail
tools=$1 data=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "$0")/expect.sh"
cd "$work"
embed="$tools/gle-embed" eval="$tools/gle-eval" search="$tools/gle-search"
small="--input 64x64 --threads 2 --workers 1 --no-progress"

tar xzf "$data/omniglot.tar.gz"
mkdir set flat
for class in $(ls test | head -n 5); do
  mkdir "set/$class"
  cp $(ls test/$class/*.png | head -n 8) "set/$class"
done
cp set/*/*_01.png flat
picture=$(ls set/*/*_03.png | head -n 1)
"$tools/gle-model" init bn_inception a.safetensors --seed 1
"$tools/gle-model" init bn_inception b.safetensors --seed 2
"$tools/gle-model" init densenet_tiny tiny.safetensors --embedding 16
# boxes FILE PATH: a CSV of three boxes, one to train on, the last in the picture PATH and the others in p.png.
boxes() {
  printf '%s\n' label,path,split,is_query,is_gallery,x_1,x_2,y_1,y_2 b,p.png,train,0,0,20,80,20,80 \
    a,p.png,test,1,1,0,52,0,52 "a,$2,test,1,1,52,104,52,104" >"$1"
}
cp "$picture" p.png
cp "$picture" q.png

# -- gle-embed ------------------------------------------------------------------------------------------------------
expect 0 "example: gle-embed" "$embed" --help
expect 2 "--out" "$embed" a.safetensors set
expect 2 "a model and images are needed" "$embed" set --out x
expect 6 "nosuch" "$embed" nosuch.safetensors set --out x $small
expect 3 "nosuch" "$embed" a.safetensors nosuch --out x $small
expect 4 "no run was saved" "$embed" set set --out x $small
expect 0 "40 embeddings of 1024" "$embed" a.safetensors set --out e $small
[ "$(stat -c %s e/embeddings.npy)" -eq $((128 + 40 * 1024 * 4)) ]
[ "$(stat -c %s e/labels.npy)" -eq $((128 + 40 * 4)) ]
[ "$(wc -l <e/ids.csv)" -eq 41 ]
expect 0 "complete already" "$embed" a.safetensors set --out e $small
expect 2 "another job" "$embed" b.safetensors set --out e $small
expect 2 "e: holds embeddings of another job: it differs in flip (false there, true here); choose" "$embed" a.safetensors set --out e --flip $small
expect 0 "40 embeddings" "$embed" a.safetensors set --out f --slope 0.5 --max-share 0.5 --beta 0.1 --flip --batch 7 $small
expect 0 "40 embeddings" "$embed" b.safetensors set --out f --overwrite $small
expect 0 "5 embeddings of 2048" "$embed" a.safetensors b.safetensors flat --out ensemble $small
ls flat/*.png >list.txt
expect 0 "5 embeddings" "$embed" a.safetensors list.txt --out listed $small
expect 0 "1 embeddings" "$embed" a.safetensors "$picture" --out one $small
cmp <(head -c $((128 + 4096)) listed/embeddings.npy | tail -c 4096) <(head -c $((128 + 4096)) e/embeddings.npy | tail -c 4096)
mkdir empty broken
printf 'no picture' >broken/a.png
expect 3 "" "$embed" a.safetensors empty --out x $small
expect 3 "a.png" "$embed" a.safetensors broken --out x $small
mkdir -p one_broken/x one_broken/y
cp flat/*.png one_broken/x
cp broken/a.png one_broken/y
expect 3 "gle-data check one_broken lists all" "$embed" tiny.safetensors one_broken --out stopped $small
expect 3 "gle-data check one_broken lists all" "$eval" tiny.safetensors one_broken $small

# What would make another data set of the pictures, or mix with files of others.
expect 2 "--out set: is the folder of the data, set" "$embed" tiny.safetensors set --out set $small
expect 2 "--out ./flat/: is the folder of the data, flat" "$embed" tiny.safetensors flat --out ./flat/ $small
[ -z "$(find set flat -type f -not -name '*.png')" ]
mkdir others
touch others/notes.txt
expect 2 "--out others: has files of something else in it, such as notes.txt" "$embed" tiny.safetensors flat --out others $small

# Other boxes and other files are another job.
boxes boxes.csv p.png
expect 0 "2 embeddings" "$embed" tiny.safetensors boxes.csv --out boxed $small
sed -i 's/,0,52,0,52/,0,50,0,50/' boxes.csv
expect 2 "another job" "$embed" tiny.safetensors boxes.csv --out boxed $small
expect 0 "2 embeddings" "$embed" tiny.safetensors boxes.csv --out boxed --overwrite $small
touch -d 2001-01-01 p.png
expect 2 "differs in images;" "$embed" tiny.safetensors boxes.csv --out boxed $small
tar cf shard.tar -C set .
expect 0 "40 embeddings" "$embed" tiny.safetensors shard.tar --out sharded --split all $small
expect 0 "complete already" "$embed" tiny.safetensors shard.tar --out sharded --split all $small
touch -d 2001-01-01 shard.tar
expect 2 "another job" "$embed" tiny.safetensors shard.tar --out sharded --split all $small

# What a file says of its network holds; --network is for those that say nothing.
sed 's/"gle":/"xyz":/' tiny.safetensors >bare.safetensors
expect 4 "name it with --network" "$embed" bare.safetensors flat --out x $small
expect 4 "does not fit bn_inception: it says that it is of densenet_tiny" "$embed" tiny.safetensors flat --out x --network bn_inception $small
expect 0 "5 embeddings of 16" "$embed" tiny.safetensors flat --out named --network densenet_tiny $small
"$tools/gle-model" init densenet_tiny pooled.safetensors
sed -i 's/"gle":/"xyz":/' pooled.safetensors
expect 0 "5 embeddings of 1072" "$embed" pooled.safetensors tiny.safetensors a.safetensors flat --out mixed --network densenet_tiny $small

# Stopped and started again: the same bytes as without a stop.
mkdir many
for class in $(ls test | head -n 40); do cp "test/$class/"*_0[1-9].png many; done
all=$(ls many | wc -l)
expect 0 "$all embeddings" "$embed" a.safetensors many --out whole --batch 2 $small
stop() {  # SIGNAL CODE: begins to fill `parts` and is stopped after some rows
  "$embed" a.safetensors many --out parts --batch 2 $small >out 2>&1 &
  local pid=$! code=0
  while [ "$(stat -c %s parts/embeddings.npy.partial 2>/dev/null || echo 0)" -lt $((128 + 6 * 4096)) ]; do
    kill -0 "$pid" || { cat out; return 1; }
    sleep 0.01
  done
  kill "-$1" "$pid"
  wait "$pid" || code=$?
  [ "$code" -eq "$2" ] || { echo "FAILED: SIG$1 gave $code, expected $2"; cat out; return 1; }
}
stop TERM 75
grep -qF "start it again to continue" out
expect 3 "start it again to continue" "$search" parts "$picture"
expect 0 "continues at image" "$embed" a.safetensors many --out parts --batch 2 $small
cmp whole/embeddings.npy parts/embeddings.npy
cmp whole/ids.csv parts/ids.csv
rm -r parts
stop INT 75
printf 'x' | dd of=parts/embeddings.npy.partial bs=1 seek=200 conv=notrunc status=none  # damaged: begins anew
expect 0 "$all embeddings" "$embed" a.safetensors many --out parts --batch 2 $small
cmp whole/embeddings.npy parts/embeddings.npy
rm -r parts
stop KILL 137
expect 0 "$all embeddings" "$embed" a.safetensors many --out parts --batch 2 $small
cmp whole/embeddings.npy parts/embeddings.npy
rm -r parts
stop INT 75
expect 2 "another job" "$embed" b.safetensors many --out parts --batch 64 $small
expect 0 "$all embeddings" "$embed" b.safetensors many --out parts --batch 64 $small --overwrite  # from its beginning
expect 0 "$all embeddings" "$embed" b.safetensors many --out other --batch 64 $small
cmp other/embeddings.npy parts/embeddings.npy

# A folder in use.
"$embed" a.safetensors many --out busy --batch 1 --input 448x448 --threads 2 --workers 1 --no-progress >busy.out 2>&1 &
pid=$!
until [ -s busy/progress.json ]; do sleep 0.01; done
expect 6 "busy: the folder is in use by process $pid" "$embed" a.safetensors many --out busy --overwrite $small
kill "$pid"
wait "$pid" || [ $? -eq 75 ]

# -- gle-eval -------------------------------------------------------------------------------------------------------
# npy FILE TYPE SHAPE BYTES: an array.
npy() {
  { printf '\x93NUMPY\x01\x00\x76\x00'; printf '%-117s\n' "{'descr': '$2', 'fortran_order': False, 'shape': ($3), }"; printf "$4"; } >"$1"
}
zero='\x00\x00\x00\x00' one='\x00\x00\x80\x3f' two='\x00\x00\x00\x40' four='\x00\x00\x80\x40' nan='\x00\x00\xc0\x7f'
i0='\x00\x00\x00\x00' i1='\x01\x00\x00\x00' i2='\x02\x00\x00\x00' im1='\xff\xff\xff\xff' im2='\xfe\xff\xff\xff'
npy points.npy '<f4' '4, 1' "$zero$one$two$four"
npy labels.npy '<i4' '4,' "$i0$i0$i1$i1"
npy nan.npy '<f4' '4, 1' "$zero$one$nan$four"
npy none.npy '<f4' '0, 1' ""
npy wide.npy '<f4' '2, 2' "$zero$one$two$four"
npy two.npy '<i4' '2,' "$i0$i1"
npy three.npy '<i4' '3,' "$i0$i0$i1"
npy single.npy '<i4' '4,' "$i0$i1$i2$im1"
npy junk.npy '<i4' '4,' "$i0$i0$i1$im1"
npy cameras.npy '<i4' '4,' "$i0$i0$i0$i1"
npy unknown.npy '<i4' '4,' "$im1$im1$im1$im1"
npy negative.npy '<i4' '4,' "$i0$i0$im1$im2"
npy halves.npy '<f2' '4, 1' '\x00\x00\x00\x3c\x00\x40\x00\x44'
npy swapped.npy '>f4' '4, 1' "$zero$one$two$four"
npy column.npy '<i4' '4, 1' "$i0$i0$i1$i1"
npy square.npy '<i4' '2, 2' "$i0$i0$i1$i1"
npy floats.npy '<f4' '4,' "$zero$one$two$four"
a="--embeddings points.npy --labels labels.npy"

expect 0 "example: gle-eval" "$eval" --help
expect 2 "give either" "$eval"
expect 2 "give either" "$eval" e $a
expect 2 "needs --labels" "$eval" --embeddings points.npy
[ "$(grep -o gle-eval: out | wc -l)" -eq 1 ]
# 0 finds 1; 1 finds 0 before 2, at the same distance; 2 finds 1 first and 4 after it and 0, again a tie; 4 finds 2.
expect 0 '"R@1": 0.75' "$eval" $a --ks 1,2,3 --json - --no-nmi
grep -qF '"R@2": 0.75' out
grep -qF '"R@3": 1.0' out
expect 2 "Recall@4 asked of a gallery of 3" "$eval" $a --ks 4
expect 2 "--ks names 1 more than once" "$eval" $a --ks 1,1,2
expect 2 "Recall@0" "$eval" $a --ks 0
expect 3 "nan.npy: row 2 holds a number that is not finite" "$eval" --embeddings nan.npy --labels labels.npy
expect 3 "no embeddings" "$eval" --embeddings none.npy --labels labels.npy
expect 3 "gallery labels: 3 for 4 embeddings" "$eval" --embeddings points.npy --labels three.npy
expect 3 'floats.npy: holds float32 [4]; whole numbers [rows] are expected, one for each embedding: save array.astype("int64")' "$eval" --embeddings points.npy --labels floats.npy
expect 3 "square.npy: holds int32 [2, 2]; whole numbers [rows] are expected, one for each embedding: save array.reshape(len(array))" "$eval" --embeddings points.npy --labels square.npy
expect 3 'labels.npy: holds int32 [4]; embeddings are floats [rows, dimensions]: save array.astype("float32")' "$eval" --embeddings labels.npy --labels labels.npy
expect 3 "floats.npy: holds float32 [4]; embeddings are floats [rows, dimensions]: save array.reshape" "$eval" --embeddings floats.npy --labels labels.npy
expect 3 'astype("float32")' "$eval" --embeddings swapped.npy --labels labels.npy
expect 0 '"R@1": 0.75' "$eval" --embeddings halves.npy --labels column.npy --ks 1 --json - --no-nmi
expect 3 "dimensions" "$eval" $a --query-embeddings wide.npy --query-labels two.npy
expect 2 "belong together" "$eval" $a --query-embeddings points.npy
head -c 140 points.npy >cut.npy
expect 3 "cut.npy" "$eval" --embeddings cut.npy --labels labels.npy
expect 6 "nosuch" "$eval" --embeddings nosuch.npy --labels labels.npy
expect 3 "no query has a match" "$eval" --embeddings points.npy --labels single.npy --no-nmi
expect 0 "2 of 4 queries have no match" "$eval" $a --cameras cameras.npy --ks 1
expect 0 "NMI" "$eval" $a --cameras unknown.npy --ks 1  # cameras of which none is known are none
expect 3 "query cameras: 0 for 4" "$eval" $a --cameras cameras.npy --query-embeddings points.npy --query-labels labels.npy
expect 0 "2 of 4 queries have no match" "$eval" $a --query-embeddings points.npy --query-labels labels.npy --distractors 1 --no-nmi
expect 3 "negative.npy: row 3 holds the label -2; labels are 0 or more, or -1 for junk" "$eval" --embeddings points.npy --labels negative.npy
expect 3 "negative.npy: row 3 holds the label -2" "$eval" $a --query-embeddings points.npy --query-labels negative.npy
expect 0 "2 of 4 queries have no match" "$eval" --embeddings points.npy --labels negative.npy --distractors=-2 --no-nmi
expect 2 "M needs the network" "$eval" $a --strategies M
expect 2 "each once" "$eval" $a --strategies B,B
expect 2 "reach beyond the 4 images that are not junk" "$eval" $a --strategies R --k1 4
expect 0 '"k1": 3' "$eval" $a --strategies R --json -  # the published values, as far as there are images
expect 0 '"k1": 2' "$eval" --embeddings points.npy --labels junk.npy --strategies R --json -
expect 2 "reach beyond the 3 images that are not junk" "$eval" --embeddings points.npy --labels junk.npy --strategies R --k1 3
expect 0 "values: cub's of the paper where no option says otherwise: B 0.004 R k1 3 (cut down from 50, as there are so few images) k2 2 lambda 0.85" "$eval" $a --strategies B,R --k2 2 --no-nmi
expect 0 '"version": "' "$eval" $a --strategies R --json - --no-nmi
grep -qF "\"embeddings\": \"$work/points.npy\"" out
grep -qF "\"labels\": \"$work/labels.npy\"" out
grep -qF '"preset": "cub"' out
expect 2 "market not in {cub" "$eval" $a --preset market
expect 0 '"k1": 3' "$eval" $a --strategies R --preset market1501 --json -
expect 2 "--preset is of --strategies" "$eval" $a --preset market1501
expect 2 "--input goes with models" "$eval" e --input 64x64
expect 2 "--restarts is of NMI" "$eval" $a --restarts 2 --no-nmi
expect 2 "here queries and gallery are two" "$eval" $a --query-embeddings points.npy --query-labels labels.npy --strategies R --duplicate-self
expect 0 '"lambda": 0.3' "$eval" $a --cameras cameras.npy --strategies R --json -
expect 2 "--beta is of B" "$eval" $a --strategies R --beta 1
expect 2 "bootstrap" "$eval" $a --bootstrap 20
expect 0 "R@2" "$eval" --ks 1,2 e
expect 2 "--distractors goes with --embeddings" "$eval" e --distractors 1
expect 2 "--labels goes with --embeddings" "$eval" a.safetensors set --labels labels.npy $small
code=0; "$eval" $a --json - >/dev/full 2>out || code=$?
[ "$code" -eq 6 ] && grep -qF "standard output" out
code=0; "$eval" --help >/dev/full 2>out || code=$?
[ "$code" -eq 6 ]
expect 0 "B+R" "$eval" $a --strategies B,R --k1 2 --k2 1 --lambda 0.5 --bootstrap 50
expect 0 "40 queries" "$eval" e --bootstrap 100 --json e.json
grep -qF '"intervals"' e.json
grep -qF "\"embeddings\": \"$work/e\"" e.json
grep -qF "\"path\": \"$work/a.safetensors\"" e.json
expect 3 "no labels" "$eval" listed
expect 0 "M+B+L+R+F" "$eval" a.safetensors set --strategies all --k1 5 --k2 2 $small --json all.json
[ "$(grep -c '"strategies"' all.json)" -eq 10 ]
grep -qF "\"data\": \"$work/set\"" all.json
grep -qF "\"path\": \"$work/a.safetensors\"" all.json
expect 0 "none" "$eval" a.safetensors b.safetensors set $small --no-nmi
expect 3 "no classes" "$eval" a.safetensors flat $small

# A run says which classes of its data set were trained on, where neither the user nor the data set does.
trained_on() {  # RUN PATH CLASSES
  mkdir -p "$1/checkpoints"
  cp tiny.safetensors "$1/checkpoints/best.gle"
  printf '[data]\npath = "%s"\ntrain_classes = "%s"\n' "$2" "$3" >"$1/config.toml"
}
trained_on run set 0:3
mkdir elsewhere other_split
cp -r set elsewhere/other
expect 0 "set: run was trained on its classes 0:3, the others are tested" "$eval" run set $small --no-nmi
grep -qF "16 queries" out
expect 0 "16 queries" "$eval" run/checkpoints/best.gle "$PWD/set/" $small --no-nmi
expect 0 "32 queries" "$eval" run set --train-classes 0:1 $small --no-nmi
expect 0 "40 queries" "$eval" run elsewhere/other $small --no-nmi
expect 0 "16 embeddings" "$embed" run set --out of_run $small
expect 0 "24 embeddings" "$embed" run set --out of_run_train --split train $small
trained_on moved /nowhere/other 0:2
expect 0 "24 queries" "$eval" moved elsewhere/other $small --no-nmi
trained_on whole_run set ''
cp -r set other_split/train
cp -r set other_split/test
trained_on split_run other_split 0:3
expect 0 "40 queries" "$eval" split_run other_split $small --no-nmi
expect 2 "run was trained on the classes '0:3' of set, whole_run on ''; say with --train-classes" "$eval" run whole_run set $small
expect 0 "40 queries" "$eval" whole_run set $small --no-nmi
echo "no = [" >whole_run/config.toml
expect 0 "what the run was trained on is not known" "$eval" whole_run set $small --no-nmi

# -- gle-search -----------------------------------------------------------------------------------------------------
expect 0 "example: gle-search" "$search" --help
expect 0 "$picture" "$search" e "$picture" flat/*.png --k 3 --json found.json --sheet found.png
grep -A 1 "^$picture" out | grep -qF "${picture#set/}"
head -c 8 found.png | cmp - <(printf '\x89PNG\r\n\x1a\n')
grep -qF '"distance"' found.json
expect 2 "41 neighbours asked of a gallery of 40" "$search" e "$picture" --k 41
expect 0 "  5  " "$search" listed "$picture"  # 10, as far as there are pictures
expect 2 "6 neighbours asked of a gallery of 5" "$search" listed "$picture" --k 6
# Two boxes of one picture look as one of it and one of a copy.
for other in p q; do
  boxes $other.csv $other.png
  expect 0 "2 embeddings" "$embed" tiny.safetensors $other.csv --out of_$other $small
  expect 0 "  2  " "$search" of_$other p.png --sheet sheet_$other.png
done
cmp sheet_p.png sheet_q.png
expect 3 "nosuch.png" "$search" e nosuch.png
expect 3 "meta.json" "$search" empty "$picture"
expect 4 "not the model" "$search" e "$picture" --model b.safetensors
mv a.safetensors moved.safetensors
expect 6 "a.safetensors" "$search" e "$picture"
expect 0 "$picture" "$search" e "$picture" --model moved.safetensors
if ! grep -q faiss < <(ldd "$search") && ! "$search" e "$picture" --model moved.safetensors --approximate >out 2>&1; then
  grep -qF "GLE_FAISS=ON" out
else
  grep -qF "of the exact 10 nearest found" out
fi
printf '\x01' | dd of=e/embeddings.npy bs=1 seek=5000 conv=notrunc status=none
expect 3 "not what meta.json says" "$search" e "$picture" --model moved.safetensors
expect 3 "not what meta.json says" "$eval" e
echo "gle-embed, gle-eval and gle-search: all as expected"
