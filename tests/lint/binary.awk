# SPDX-License-Identifier: BSD-2-Clause
# The binary lint: first file layers.txt, then lines "member.c [value] type name".

FNR == NR {
    if ($1 != "sole") next
    users = $2
    gsub(/[a-z]+\//, "", users)  # archive members have no folder
    for (i = 4; i <= NF; i++) {
        if ($i ~ /\*$/) {
            word = substr($i, 1, length($i) - 1)
            prefix_owner[word] = prefix_owner[word] "," users ","
        } else {
            owner[$i] = owner[$i] "," users ","
        }
    }
    next
}

# __open64_2, __pread64_chk, __printf_chk: other names for the function that was called.
function plain(name) {
    if (name ~ /^__.*_chk$/ || name ~ /^__.*_2$/ || name ~ /^__(fxstat|xstat|lxstat)/)
        sub(/^__/, "", name)
    sub(/_chk$|_2$/, "", name)
    sub(/64$/, "", name)
    return name
}

function offence(reason) { print $1 ":1: " reason }

NF == 4 && $4 !~ /^(tm_|tamis_|__)/ { offence("defines " $4 ", which is neither tm_ nor tamis_") }

NF == 3 && $2 == "U" {
    name = plain($3)
    if (name ~ /^__assert/ && kind == "release") offence("keeps assert() in a release build")
    users = owner[name]
    for (p in prefix_owner) if (index(name, p) == 1) users = users prefix_owner[p]
    if (users != "" && !index(users, "," $1 ",")) {
        gsub(/^,|,$|-/, "", users); gsub(/,+/, ", ", users)
        offence("calls " $3 (users == "" ? ", which the library never does" : ", left to " users))
    }
}
