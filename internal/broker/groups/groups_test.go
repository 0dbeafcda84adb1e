package groups_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/broker/groups"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble/pebbletest"
)

// harness is a coordinator over an in-memory engine, inside a synctest bubble.
type harness struct {
	*testing.T
	engine engine.Engine
	*groups.Coordinator
	key groups.Key
}

// inBubble runs a test with its own world.
func inBubble(t *testing.T, test func(w *harness)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newBubbleHarness(t)
		test(w)
		if err := errors.Join(w.Coordinator.Close(), w.engine.Close()); err != nil {
			t.Error(err)
		}
	})
}

// newBubbleHarness returns a world inside a bubble; the caller closes coordinator and engine.
func newBubbleHarness(t *testing.T) *harness {
	t.Helper()
	e, err := pebbletest.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	w := &harness{T: t, engine: e, key: groups.Key{Tenant: "public", Group: "g"}}
	w.open()
	return w
}

func (w *harness) open() {
	w.Helper()
	c, err := groups.Open(w.Context(), w.engine, groups.Options{})
	if err != nil {
		w.Fatal(err)
	}
	w.Coordinator = c
}

// restart closes the coordinator and opens it again on the same journals.
func (w *harness) restart() {
	w.Helper()
	if err := w.Coordinator.Close(); err != nil {
		w.Fatal(err)
	}
	w.open()
}

func request(id string, protocols ...string) *groups.JoinRequest {
	r := &groups.JoinRequest{
		MemberID: id, ClientID: "client", ClientHost: "/127.0.0.1", SessionTimeout: 10 * time.Second,
		RebalanceTimeout: time.Minute, Type: "consumer",
	}
	if len(protocols) == 0 {
		protocols = []string{"range"}
	}
	for _, p := range protocols {
		r.Protocols = append(r.Protocols, groups.Protocol{Name: p, Metadata: []byte("topics")})
	}
	return r
}

func static(id, instance string) *groups.JoinRequest {
	r := request(id)
	r.InstanceID = instance
	return r
}

// outcome is the result of a Join.
type outcome struct {
	groups.JoinResult
	err error
}

// join calls Join in the background.
func (w *harness) join(req *groups.JoinRequest) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		result, err := w.Join(w.Context(), w.key, req)
		done <- outcome{result, err}
	}()
	return done
}

// joined returns the results of joins and fails the test if one failed.
func (w *harness) joined(joins ...<-chan outcome) []groups.JoinResult {
	w.Helper()
	results := make([]groups.JoinResult, len(joins))
	for i, j := range joins {
		o := <-j
		if o.err != nil {
			w.Fatalf("join %d: %v", i, o.err)
		}
		results[i] = o.JoinResult
	}
	return results
}

// sync requests the assignments of all members; the leader assigns each member its own id.
func (w *harness) sync(results ...groups.JoinResult) {
	w.Helper()
	type synced struct {
		i      int
		result groups.SyncResult
		err    error
	}
	done := make(chan synced, len(results))
	for i, r := range results {
		req := &groups.SyncRequest{
			MemberID: r.MemberID, Generation: r.Generation, Type: "consumer",
			Protocol: r.Protocol,
		}
		if r.MemberID == r.Leader {
			req.Assignments = make(map[string][]byte)
			for _, m := range r.Members {
				req.Assignments[m.ID] = []byte("for " + m.ID)
			}
		}
		go func() {
			result, err := w.Sync(w.Context(), w.key, req)
			done <- synced{i, result, err}
		}()
	}
	for range results {
		s := <-done
		if want := "for " + results[s.i].MemberID; s.err != nil || string(s.result.Assignment) != want {
			w.Fatalf("sync of %s: got %q, %v; want %q", results[s.i].MemberID, s.result.Assignment, s.err, want)
		}
	}
}

// stable creates a stable group of new members.
func (w *harness) stable(reqs ...*groups.JoinRequest) []groups.JoinResult {
	w.Helper()
	joins := make([]<-chan outcome, len(reqs))
	for i, r := range reqs {
		joins[i] = w.join(r)
		synctest.Wait() // so that the first member becomes the leader
	}
	results := w.joined(joins...)
	w.sync(results...)
	return results
}

func (w *harness) wantState(want string, members int) {
	w.Helper()
	d, err := w.Describe(w.key)
	if err != nil || d.State != want || len(d.Members) != members {
		w.Fatalf("group is %s with %d members (error %v), want %s with %d", d.State, len(d.Members), err, want, members)
	}
}

func (w *harness) wantError(err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Fatalf("error is %v, want %v", err, want)
	}
}

func TestMembersGetTheirAssignments(t *testing.T) {
	inBubble(t, func(w *harness) {
		results := w.stable(request(""), request(""), request(""))
		for i, r := range results {
			if r.Generation != 1 || r.Leader != results[0].MemberID || r.Protocol != "range" {
				w.Errorf("member %d is in generation %d of %s by %q, want 1 of the first by range", i, r.Generation,
					r.Leader, r.Protocol)
			}
			if want := 3; i == 0 && len(r.Members) != want || i > 0 && len(r.Members) != 0 {
				w.Errorf("member %d gets %d members, want %d for the leader and none for others", i,
					len(r.Members), want)
			}
		}
		w.wantState("Stable", 3)
		for _, r := range results {
			w.wantError(w.Heartbeat(w.key, groups.Caller{}, r.MemberID, "", 1), nil)
			w.wantError(w.Heartbeat(w.key, groups.Caller{}, r.MemberID, "", 2), groups.ErrGeneration)
		}
		w.wantError(w.Heartbeat(w.key, groups.Caller{}, "stranger", "", 1), groups.ErrUnknownMember)
	})
}

// TestFirstRebalanceWaitsForMoreMembers checks that a member that joins within the initial delay is in the
// first generation.
func TestFirstRebalanceWaitsForMoreMembers(t *testing.T) {
	inBubble(t, func(w *harness) {
		start := time.Now()
		first := w.join(request(""))
		time.Sleep(groups.DefaultInitialDelay - time.Millisecond)
		second := w.join(request(""))
		results := w.joined(first, second)
		if results[0].Generation != 1 || results[1].Generation != 1 {
			w.Errorf("generations are %d and %d, want 1 for both", results[0].Generation, results[1].Generation)
		}
		if waited := time.Since(start); waited != 2*groups.DefaultInitialDelay {
			w.Errorf("group waited for %s, want another delay after the second member: %s", waited,
				2*groups.DefaultInitialDelay)
		}
	})
}

func TestNewMemberRebalances(t *testing.T) {
	inBubble(t, func(w *harness) {
		one := w.stable(request(""))[0]
		second := w.join(request(""))
		synctest.Wait()
		w.wantState("PreparingRebalance", 2)
		w.wantError(w.Heartbeat(w.key, groups.Caller{}, one.MemberID, "", 1), groups.ErrRebalancing)
		again := w.join(request(one.MemberID))
		results := w.joined(again, second)
		if results[0].Generation != 2 || results[0].Leader != one.MemberID {
			w.Errorf("generation is %d of %s, want 2 of %s", results[0].Generation, results[0].Leader, one.MemberID)
		}
		w.sync(results...)
		w.wantState("Stable", 2)
	})
}

// TestSilentMemberIsDropped checks that the end of a member's session starts a rebalance, and that
// a member that does not rejoin is removed too.
func TestSilentMemberIsDropped(t *testing.T) {
	inBubble(t, func(w *harness) {
		results := w.stable(request(""), request(""))
		stop := w.beat(results[0])
		time.Sleep(11 * time.Second)
		synctest.Wait()
		w.wantState("PreparingRebalance", 1)
		stop()
		r := w.joined(w.join(request(results[0].MemberID)))
		w.sync(r...)
		w.wantState("Stable", 1)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		w.wantState("Empty", 0)
	})
}

// beat sends heartbeats for a member until the returned function is called.
func (w *harness) beat(r groups.JoinResult) (stop func()) {
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_ = w.Heartbeat(w.key, groups.Caller{}, r.MemberID, "", r.Generation)
			select {
			case <-ctx.Done():
			case <-time.After(3 * time.Second):
			}
		}
	}()
	return func() { cancel(); <-done }
}

func TestMemberThatDoesNotRejoinIsRemoved(t *testing.T) {
	inBubble(t, func(w *harness) {
		old := w.stable(request(""))[0]
		stop := w.beat(old) // alive, but ignores the rebalance
		defer stop()
		start := time.Now()
		r := w.joined(w.join(request("")))
		if waited := time.Since(start); waited != time.Minute {
			w.Errorf("new member waited for %s, want the rebalance timeout of %s", waited, time.Minute)
		}
		w.sync(r...)
		w.wantState("Stable", 1)
		w.wantError(w.Heartbeat(w.key, groups.Caller{}, old.MemberID, "", 1), groups.ErrUnknownMember)
	})
}

func TestMemberThatDoesNotSyncIsRemoved(t *testing.T) {
	inBubble(t, func(w *harness) {
		a := w.join(request(""))
		synctest.Wait()
		results := w.joined(a, w.join(request("")))
		stop0, stop1 := w.beat(results[0]), w.beat(results[1])
		defer stop0()
		defer stop1()
		// The leader never sends SyncGroup, so the follower must join again.
		_, err := w.Sync(w.Context(), w.key, &groups.SyncRequest{MemberID: results[1].MemberID, Generation: 1})
		w.wantError(err, groups.ErrRebalancing)
		w.wantState("PreparingRebalance", 1)
		r := w.joined(w.join(request(results[1].MemberID)))
		w.sync(r...)
		w.wantState("Stable", 1)
	})
}

func TestMemberIDIsNeeded(t *testing.T) {
	inBubble(t, func(w *harness) {
		req := request("")
		req.RequireMemberID = true
		result, err := w.Join(w.Context(), w.key, req)
		w.wantError(err, groups.ErrMemberIDRequired)
		if result.MemberID == "" {
			w.Fatal("got no member id, want one")
		}
		r := w.joined(w.join(request(result.MemberID)))
		if r[0].MemberID != result.MemberID {
			w.Errorf("member id is %s, want %s", r[0].MemberID, result.MemberID)
		}
	})
}

// TestIDThatIsNeverUsed checks that a returned member id that no client uses leaves no group
// behind.
func TestIDThatIsNeverUsed(t *testing.T) {
	inBubble(t, func(w *harness) {
		req := request("")
		req.RequireMemberID = true
		result, err := w.Join(w.Context(), w.key, req)
		w.wantError(err, groups.ErrMemberIDRequired)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		_, err = w.Join(w.Context(), w.key, request(result.MemberID))
		w.wantError(err, groups.ErrUnknownMember)
		if all := w.List("public"); len(all) != 0 {
			w.Errorf("groups are %v, want none", all)
		}
	})
}

func TestMembersNeedACommonProtocol(t *testing.T) {
	inBubble(t, func(w *harness) {
		a := w.join(request("", "range", "sticky"))
		synctest.Wait()
		b := w.join(request("", "sticky", "range"))
		synctest.Wait()
		c := w.join(request("", "sticky"))
		results := w.joined(a, b, c)
		if results[0].Protocol != "sticky" {
			w.Errorf("protocol is %q, want sticky, which all members support", results[0].Protocol)
		}
		w.sync(results...)
		_, err := w.Join(w.Context(), w.key, request("", "other"))
		w.wantError(err, groups.ErrProtocol)
		connect := request("", "sticky")
		connect.Type = "connect"
		_, err = w.Join(w.Context(), w.key, connect)
		w.wantError(err, groups.ErrProtocol)
		w.wantState("Stable", 3)
	})
}

func TestStaticMemberIsReplaced(t *testing.T) {
	inBubble(t, func(w *harness) {
		results := w.stable(static("", "one"), static("", "two"))
		again, err := w.Join(w.Context(), w.key, static("", "two"))
		w.wantError(err, nil)
		if again.Generation != 1 || again.MemberID == results[1].MemberID {
			w.Errorf("new process is %s in generation %d, want a new id in generation 1", again.MemberID,
				again.Generation)
		}
		w.wantState("Stable", 2)
		w.wantError(w.Heartbeat(w.key, groups.Caller{}, results[1].MemberID, "two", 1), groups.ErrFencedInstance)
		got, err := w.Sync(w.Context(), w.key,
			&groups.SyncRequest{MemberID: again.MemberID, InstanceID: "two", Generation: 1})
		if want := "for " + results[1].MemberID; err != nil || string(got.Assignment) != want {
			w.Errorf("assignment is %q (error %v), want that of the replaced member: %q", got.Assignment, err, want)
		}
		// After a restart the coordinator accepts the new process.
		w.restart()
		w.wantError(w.Heartbeat(w.key, groups.Caller{}, again.MemberID, "two", 1), nil)

		other := static("", "two")
		other.Protocols[0].Metadata = []byte("other topics")
		changed := w.join(other)
		synctest.Wait()
		w.wantState("PreparingRebalance", 2)
		w.joined(w.join(static(results[0].MemberID, "one")), changed)
	})
}

func TestLeavingMembers(t *testing.T) {
	inBubble(t, func(w *harness) {
		results := w.stable(request(""), static("", "two"), request(""))
		failed, err := w.Leave(w.key, groups.Caller{},
			[]groups.LeavingMember{{MemberID: results[2].MemberID}, {InstanceID: "two"}, {MemberID: "stranger"}})
		if err != nil || failed[0] != nil || failed[1] != nil || !errors.Is(failed[2], groups.ErrUnknownMember) {
			w.Fatalf("leaving: %v, %v; want only the stranger to fail", failed, err)
		}
		w.wantState("PreparingRebalance", 1)
		w.sync(w.joined(w.join(request(results[0].MemberID)))...)
		_, err = w.Leave(w.key, groups.Caller{}, []groups.LeavingMember{{MemberID: results[0].MemberID}})
		w.wantError(err, nil)
		w.wantState("Empty", 0)
		w.restart()
		w.wantState("Empty", 0)
		if r := w.stable(request("")); r[0].Generation != 4 {
			w.Errorf("generation is %d, want 4, which was never used", r[0].Generation)
		}
	})
}

// TestRestartKeepsStableGroups checks that generation, members and assignments survive a restart.
func TestRestartKeepsStableGroups(t *testing.T) {
	inBubble(t, func(w *harness) {
		results := w.stable(request(""), request(""))
		w.restart()
		w.wantState("Stable", 2)
		time.Sleep(9 * time.Second) // less than a session timeout after the restart
		for _, r := range results {
			w.wantError(w.Heartbeat(w.key, groups.Caller{}, r.MemberID, "", 1), nil)
			got, err := w.Sync(w.Context(), w.key, &groups.SyncRequest{MemberID: r.MemberID, Generation: 1})
			if want := "for " + r.MemberID; err != nil || string(got.Assignment) != want {
				w.Errorf("assignment is %q (error %v), want %q", got.Assignment, err, want)
			}
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		w.wantState("Empty", 0)
	})
}

func TestCloseEndsWaitingCalls(t *testing.T) {
	inBubble(t, func(w *harness) {
		waiting := w.join(request(""))
		synctest.Wait()
		w.wantError(w.Coordinator.Close(), nil)
		w.wantError((<-waiting).err, groups.ErrClosed)
		_, err := w.Join(w.Context(), w.key, request(""))
		w.wantError(err, groups.ErrClosed)
		w.open()
	})
}

func TestWaitingCallerThatLeaves(t *testing.T) {
	inBubble(t, func(w *harness) {
		old := w.stable(request(""))[0]
		stop := w.beat(old)
		defer stop()
		ctx, cancel := context.WithCancel(w.Context())
		left := make(chan error, 1)
		go func() {
			_, err := w.Join(ctx, w.key, request(""))
			left <- err
		}()
		synctest.Wait()
		cancel()
		w.wantError(<-left, context.Canceled)
		// The abandoned member is removed when its session ends; the other member need not wait
		// longer.
		start := time.Now()
		r := w.joined(w.join(request(old.MemberID)))
		if waited := time.Since(start); waited != 10*time.Second || len(r[0].Members) != 1 {
			w.Errorf("joined after %s with %d members, want the session timeout of 10 s and one member", waited,
				len(r[0].Members))
		}
	})
}

// TestRebalanceTimeouts checks the rebalance timeouts that clients send: some send the largest
// number for "unlimited", others 0 for "unknown". A member with either can join a group.
func TestRebalanceTimeouts(t *testing.T) {
	for name, timeout := range map[string]time.Duration{
		"none": 0, "negative": -1,
		"longest": math.MaxInt32 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *harness) {
				req := request("")
				req.RebalanceTimeout = timeout
				joined := w.joined(w.join(req))
				time.Sleep(5 * time.Second) // the leader may take some time to assign
				w.sync(joined...)
				w.wantError(w.Heartbeat(w.key, groups.Caller{}, joined[0].MemberID, "", joined[0].Generation), nil)
			})
		})
	}
}
