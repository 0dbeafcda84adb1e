package messageapi

import (
	"sync"

	"freshet/internal/broker/messaging"
)

// batchRoom has reusable buffers for the messages of a batch: as decoded and as passed
// to the broker. They are three quarters of the memory that decoding a batch needs.
type batchRoom struct {
	rows     batchList
	messages []messaging.Message
}

// keptBatch is the largest batch whose buffers are reused.
const keptBatch = 1000

var batchRooms = sync.Pool{New: func() any { return new(batchRoom) }}

// takeBatchRoom returns buffers. The caller owns them; it may return them with giveBack.
func takeBatchRoom() *batchRoom {
	room, _ := batchRooms.Get().(*batchRoom)
	return room
}

// giveBack returns the buffers, which may have grown, to the pool. The caller must not
// use the slices afterwards.
func (r *batchRoom) giveBack(rows batchList, messages []messaging.Message) {
	if cap(rows) > keptBatch || cap(messages) > keptBatch {
		return
	}
	clear(rows) // so that they do not keep the request's memory alive
	clear(messages)
	r.rows, r.messages = rows[:0], messages[:0]
	batchRooms.Put(r)
}
