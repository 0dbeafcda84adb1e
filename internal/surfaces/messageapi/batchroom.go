package messageapi

import (
	"sync"

	"freshet/internal/broker/messaging"
)

// batchRoom is memory for the messages of a batch, in both of the forms that they go
// through, and three quarters of the memory that reading a batch takes.
type batchRoom struct {
	rows     batchList
	messages []messaging.Message
}

// keptBatch is the largest batch whose room is kept.
const keptBatch = 1000

var batchRooms = sync.Pool{New: func() any { return new(batchRoom) }}

// takeBatchRoom returns room that is the caller's until it is given back, if ever.
func takeBatchRoom() *batchRoom {
	room, _ := batchRooms.Get().(*batchRoom)
	return room
}

// giveBack keeps the room, as far as it has grown, for the next batch. Nobody may use
// the slices any more.
func (r *batchRoom) giveBack(rows batchList, messages []messaging.Message) {
	if cap(rows) > keptBatch || cap(messages) > keptBatch {
		return
	}
	clear(rows) // they refer to the request
	clear(messages)
	r.rows, r.messages = rows[:0], messages[:0]
	batchRooms.Put(r)
}
