package journal

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcptasks/taskmodel"
)

// killRounds is how often the writing process is killed.
const killRounds = 200

const killVariable = "MCPTASKS_JOURNAL_KILL_DIR"

// TestMain is also the process that is killed: with the variable set it writes
// until somebody ends it, and says on stdout what is on disk.
func TestMain(m *testing.M) {
	if dir := os.Getenv(killVariable); dir != "" {
		if err := writeUntilKilled(dir, os.Getenv(killVariable+"_ROUND")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// writeUntilKilled runs task after task through its life: created, asked,
// answered, ended, with a result. Each step is said after it was written.
func writeUntilKilled(dir, round string) error {
	j, err := Open(dir, Options{Wait: 30 * time.Second})
	if err != nil {
		return err
	}
	ctx := context.Background()
	say := bufio.NewWriterSize(os.Stdout, 0)
	step := func(what, id string, entries ...Entry) error {
		if err := j.Write(ctx, entries...); err != nil {
			return err
		}
		_, err := fmt.Fprintf(say, "%s %s\n", what, id)
		_ = say.Flush()
		return err
	}
	for i := range 100_000 {
		id := fmt.Sprintf("r%s-%d", round, i)
		task := working(id)
		q := taskmodel.Question{ID: taskmodel.QuestionID{Server: "ci", ID: "q" + id}, Task: task.Key, Kind: taskmodel.AskForm, State: taskmodel.QuestionOpen}
		end := ended(id, taskmodel.Completed, 9)
		sending, taken := q, q
		sending.State, taken.State = taskmodel.QuestionSending, taskmodel.QuestionAnswered
		a := taskmodel.Answer{Question: q.ID, Action: taskmodel.Accept, Content: json.RawMessage(`{"id":"` + id + `"}`)}
		created := entry(task)
		created.Event = &taskmodel.Event{Kind: taskmodel.EventCreated, Time: time.Now()}
		for _, s := range []struct {
			what    string
			entries []Entry
		}{
			{"created", []Entry{created}},
			{"asked", []Entry{{Target: target, Question: &q}}},
			{"sending", []Entry{{Target: target, Question: &sending, Answer: &a}}},
			{"taken", []Entry{{Target: target, Question: &taken, Delivered: &q.ID}}},
			{"ended", []Entry{entry(end)}},
			{"result", []Entry{{Target: target, Key: end.Key, Outcome: &taskmodel.Outcome{Result: json.RawMessage(`"` + id + `"`)}}}},
		} {
			if err := step(s.what, id, s.entries...); err != nil {
				return err
			}
		}
		j.Queue(Entry{Target: target, Key: task.Key, Event: &taskmodel.Event{Kind: taskmodel.EventResult}})
	}
	return nil
}

// D: a process that writes is killed at random points, at least 200 times.
// After each time: nothing that was said to be on disk is lost, an answer that
// was being sent stands as unconfirmed, no status is one that was never
// written, and the file is whole.
func TestKilledAtAnyPoint(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes SQLite 25 times slower")
	}
	rounds := killRounds
	if testing.Short() {
		rounds = 10
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("MCPTASKS_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("MCPTASKS_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	steps := 0
	for round := range rounds {
		said := killOnce(t, dir, round, time.Duration(r.IntN(25_000))*time.Microsecond)
		steps += len(said)
		checkAfterKill(t, dir, round, said)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	t.Logf("%d rounds, %d steps were on disk when it was killed", rounds, steps)
	if steps == 0 {
		t.Error("the process was never far enough to write")
	}
}

// killOnce runs the writer, kills it some time after its first step, and
// returns what it said: the last step of each task.
func killOnce(t *testing.T, dir string, round int, after time.Duration) map[string]string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killVariable+"="+dir, fmt.Sprintf("%s_ROUND=%d", killVariable, round))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	lines := bufio.NewScanner(out)
	first := true
	for lines.Scan() {
		if first { // from here on, not from its start: that takes most of the time
			first = false
			time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		}
		if what, id, ok := strings.Cut(lines.Text(), " "); ok {
			said[id] = what
		}
	}
	_ = cmd.Wait()
	if first {
		t.Errorf("the writer ended before its first step: %v", cmd.ProcessState)
	}
	return said
}

func checkAfterKill(t *testing.T, dir string, round int, said map[string]string) {
	t.Helper()
	j, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := j.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	r := restore(t, j)
	tasks, questions, answers := map[string]taskmodel.Task{}, map[string]taskmodel.Question{}, map[string]taskmodel.Answer{}
	for _, x := range r.Tasks {
		tasks[x.ID] = x
	}
	for _, q := range r.Questions {
		questions[q.ID.ID] = q
	}
	for _, a := range r.Answers {
		answers[a.Question.ID] = a
	}
	order := []string{"created", "asked", "sending", "taken", "ended", "result"}
	for id, what := range said {
		at := 0
		for order[at] != what {
			at++
		}
		task, ok := tasks[id]
		if !ok {
			t.Errorf("%s is lost, %s was on disk", id, what)
			continue
		}
		// One step more may be on disk than was said.
		switch {
		case task.Status == taskmodel.Completed && at < 3, task.Status == taskmodel.Working && at > 3,
			task.Status != taskmodel.Working && task.Status != taskmodel.Completed:
			t.Errorf("%s is %s after %s", id, task.Status, what)
		case task.Status == taskmodel.Working && task.Standing != taskmodel.Restored:
			t.Errorf("%s stands as %s", id, task.Standing)
		}
		q, asked := questions["q"+id]
		a, kept := answers["q"+id]
		switch {
		case at >= 1 && !asked:
			t.Errorf("the question of %s is lost", id)
		case at == 2 && q.State != taskmodel.QuestionUnconfirmed && q.State != taskmodel.QuestionAnswered:
			t.Errorf("the answer of %s was being sent; it stands as %s", id, q.State)
		case q.State == taskmodel.QuestionUnconfirmed && (!kept || string(a.Content) != `{"id":"`+id+`"}`):
			t.Errorf("the words of the unconfirmed answer of %s are lost", id)
		case q.State == taskmodel.QuestionSending:
			t.Errorf("the answer of %s is still being sent by nobody", id)
		case at >= 3 && kept:
			t.Errorf("the delivered answer of %s is still there", id)
		}
		if at == 5 && !task.Outcome.KeptHere {
			t.Errorf("the result of %s is lost", id)
		}
	}
	if round%20 == 0 {
		var word string
		if err := j.read.QueryRow(`PRAGMA integrity_check(1)`).Scan(&word); err != nil || word != "ok" {
			t.Errorf("the file is %q: %v", word, err)
		}
	}
}
