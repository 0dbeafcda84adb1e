. "$EXAMPLES/orders.inc"
# Two attempts at each message, and none succeeds.
freshet consume orders -s billing --exec false --nack-delay 0s || true
