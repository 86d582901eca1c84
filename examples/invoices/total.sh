#!/bin/sh
# Totals the invoices of a CSV file into a report, customer by customer.
#
# A robot runs it: the input comes as JSON on standard input, the result goes to $ACTA_RESULT_FILE, exit code 65 says
# that the invoices can't be accepted as they are. Amounts are added in cents.
set -eu

csv=$(sed -n 's/.*"invoices"[^"]*"\([^"]*\)".*/\1/p')
if [ ! -f "$csv" ]; then
    echo "there is no file '$csv'" >&2
    exit 65
fi
echo "reading $csv"

awk -F, -v result="$ACTA_RESULT_FILE" '
function cents(text, parts) {
    split(text, parts, ".")
    return parts[1] * 100 + parts[2]
}
function euros(number) {
    return sprintf("%d.%02d", int(number / 100), number % 100)
}
function reject(why) {
    print "row " NR ": " why > "/dev/stderr"
    rejected = 1
    exit 65
}
NR == 1 {
    if ($0 != "number,customer,date,net,vat") reject("the columns are not number,customer,date,net,vat")
    next
}
NF != 5                   { reject("has " NF " columns, not 5") }
$1 in seen                { reject("invoice " $1 " stands there twice") }
$4 !~ /^[0-9]+\.[0-9][0-9]$/ { reject("net amount \"" $4 "\" is not an amount like 12.40") }
$5 !~ /^[0-9]+\.[0-9][0-9]$/ { reject("VAT \"" $5 "\" is not an amount like 12.40") }
{
    seen[$1] = 1
    if (!($2 in gross)) order[++customers] = $2
    gross[$2] += cents($4) + cents($5)
    total += cents($4) + cents($5)
    count++
}
END {
    if (rejected) exit 65
    for (i = 1; i <= customers; i++) printf "%-20s %12s\n", order[i], euros(gross[order[i]])
    printf "%-20s %12s\n", "all", euros(total)
    printf "{\"invoices\": %d, \"customers\": %d, \"gross\": \"%s\"}\n", count, customers, euros(total) > result
}
' "$csv"
