package kafkadiff

// allowed is the complete list of the differences between freshet and Kafka in the
// conversations of this package. The first row that matches counts.
var allowed = []allowance{}
