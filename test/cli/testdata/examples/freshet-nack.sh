. "$EXAMPLES/orders.inc"
# A reader that has borrowed four messages and died.
curl -sS --fail-with-body -X POST "$SERVER_HTTP/admin/rest/topics/v1/public/default/orders/billing/messages" \
	-H "Authorization: Bearer $(cat freshet-data/admin.token)" -d '{"maxMessages": 4}' |
	tr ',' '\n' | sed -n 's/.*"messageStringId":"\([^"]*\)".*/\1/p' > held.txt
