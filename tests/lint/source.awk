# SPDX-License-Identifier: BSD-2-Clause
# The source lint: first file layers.txt, then all others, named from the root of the tree.

BEGIN {
    LINE_MAX = 100; FUNCTION_MAX = 100; FILE_WARN = 700; FILE_MAX = 900
    # Put together, so that this file does not offend itself.
    banned = "TO" "DO|FIX" "ME|(^|[^X])X" "XX([^X]|$)"
    banned_phrase = "not " "implemented|place" "holder"
}

function offence(reason) { print FILENAME ":" FNR ": " reason }

# ---- layers.txt ----------------------------------------------------------------------------------

FNR == NR && $1 == "floor" { floor[$2] = $3 }
FNR == NR && $1 == "public" { public[$2] = 1; n = $2; sub(/.*\//, "", n); public_path[n] = $2 }
FNR == NR && $1 == "grant" { for (i = 3; i <= NF; i++) grant[$2, $i] = 1; granted[$2] = 1 }
FNR == NR && $1 == "sole" {
    for (i = 4; i <= NF; i++) {
        if ($i ~ /\*$/) {
            word = substr($i, 1, length($i) - 1)
            prefix_owner[word] = prefix_owner[word] "," $2 ","
        } else {
            owner[$i] = owner[$i] "," $2 ","
        }
    }
}

# ---- One file ------------------------------------------------------------------------------------

function end_file() {
    if (c_file && file_lines > FILE_MAX)
        print file ":" file_lines ": " file_lines " lines, at most " FILE_MAX
    else if (c_file && file_lines > FILE_WARN)
        print file ":" file_lines ": warning: " file_lines " lines, more than " FILE_WARN
}

FNR == 1 {
    if (NR > 1) end_file()
    file = FILENAME
    folder = file; sub(/\/.*/, "", folder)
    c_file = file ~ /\.[ch]$/
    in_library = (folder in floor) && folder != "tools"
    in_comment = directive = depth = function_line = head_line = 0
    head = ""
}

{
    file_lines = FNR
    if (FILENAME ~ /\.(c|h|sh|cmake|awk)$|CMakeLists\.txt$/) {
        width = $0
        gsub(/[\200-\277]/, "", width)  # UTF-8: count characters
        if (length(width) > LINE_MAX) offence(length(width) " columns, at most " LINE_MAX)
    }
    if ($0 ~ banned || tolower($0) ~ banned_phrase) offence("a banned word: finish it or take it out")
    if (c_file) check_c($0)
}

END { end_file() }

# ---- C -------------------------------------------------------------------------------------------

# The line without comments, and with empty strings.
function strip(s,    out, c) {
    out = ""
    while (s != "") {
        if (in_comment) {
            if (!match(s, /\*\//)) return out
            in_comment = 0
            s = substr(s, RSTART + 2)
            continue
        }
        if (!match(s, /\/\/|\/\*|"|'/)) return out s
        out = out substr(s, 1, RSTART - 1)
        c = substr(s, RSTART, RLENGTH)
        s = substr(s, RSTART + RLENGTH)
        if (c == "//") return out
        if (c == "/*") { in_comment = 1; continue }
        out = out c c
        if (c == "\"") { if (!match(s, /^([^"\\]|\\.)*"/)) return out }
        else if (!match(s, /^([^'\\]|\\.)*'/)) return out
        s = substr(s, RLENGTH + 1)
    }
    return out
}

function check_c(raw,    line) {
    if (!in_comment && raw ~ /^[ \t]*#[ \t]*include/) check_include(raw)
    line = strip(raw)
    if (in_library) check_words(line)
    if (directive || line ~ /^[ \t]*#/) {
        directive = line ~ /\\$/
        return
    }
    if (line !~ /^extern "" *\{/) check_function(line)
}

function may_include(target, to,    g) {
    if (to == folder) return 1
    if (folder == "tools") {
        if (target in public) return 1
        for (g in granted)
            if (index(file, g) == 1 && ((g, to) in grant || (g, target) in grant)) return 1
        return 0
    }
    return floor[to] < floor[folder]
}

function check_include(raw,    target, to) {
    if (match(raw, /<[^>]*>/)) {
        target = substr(raw, RSTART + 1, RLENGTH - 2)
        if (in_library) check_sole(target, "includes")
        if (!(target in public_path)) return
    } else if (match(raw, /"[^"]*"/)) {
        target = substr(raw, RSTART + 1, RLENGTH - 2)
    } else return
    if (target in public_path) target = public_path[target]
    if (!(folder in floor)) return  # tests include anything
    to = target
    if (!sub(/\/.*/, "", to) || !(to in floor)) {
        offence("include \"" target "\" names no folder of the tree")
    } else if (!may_include(target, to)) {
        offence("include \"" target "\" is not for " folder "/: see tests/lint/layers.txt")
    }
}

function check_sole(word, verb,    p, users) {
    users = owner[word]
    for (p in prefix_owner) if (index(word, p) == 1) users = users prefix_owner[p]
    if (users == "" || index(users, "," file ",")) return
    gsub(/^,|,$|-/, "", users); gsub(/,+/, ", ", users)
    offence(verb " " word (users == "" ? ", which the library never does" : ", left to " users))
}

# Identifiers that are called; names under a prefix rule wherever they stand. A member of a struct
# (vfs->open) is another thing than the function of that name.
function check_words(s,    word, before, called) {
    before = ""
    while (match(s, /[A-Za-z_][A-Za-z0-9_]*/)) {
        if (RSTART > 1) before = substr(s, RSTART > 2 ? RSTART - 2 : 1, RSTART > 2 ? 2 : 1)
        word = substr(s, RSTART, RLENGTH)
        s = substr(s, RSTART + RLENGTH)
        called = s ~ /^ *\(/
        if (before !~ /(\.|->)$/ && before !~ /[0-9]$/) {
            if (word in owner) { if (called || word ~ /^std(out|err|in)$/) check_sole(word, "uses") }
            else if (word ~ /^(pthread_|LZ4_|XXH)/) check_sole(word, "uses")
        }
        before = ""
    }
}

# Counts braces. A function is what opens at depth 0 after ")".
function check_function(line,    s, c, lines) {
    if (line ~ /^\}/) depth = 1  # a closing brace in the first column ends whatever was open
    s = line
    while (match(s, /[{};]/)) {
        c = substr(s, RSTART, 1)
        if (depth == 0) {
            head = head " " substr(s, 1, RSTART - 1)
            if (!head_line && head ~ /[^ \t]/) head_line = FNR
        }
        s = substr(s, RSTART + 1)
        if (c == "{") {
            if (depth == 0 && head ~ /\)[ \t]*$/) function_line = head_line ? head_line : FNR
            depth++
        } else if (c == "}" && depth > 0) {
            depth--
            lines = FNR - function_line + 1
            if (depth == 0 && function_line && lines > FUNCTION_MAX)
                print FILENAME ":" function_line ": function of " lines " lines, at most " FUNCTION_MAX
        }
        if (depth == 0) { head = ""; head_line = 0; if (c == "}") function_line = 0 }
    }
    if (depth == 0) {
        head = head " " s
        if (!head_line && s ~ /[^ \t]/) head_line = FNR
    }
}
