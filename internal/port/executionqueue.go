package port

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sort"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// The keys of the seed execution-queue: the running execution, and a list
// that is pushed at its head and popped at its tail.
const (
	keyRunning = "agent:running:"
	keyQueue   = "agent:queue:"
)

// execution is a value of those keys (seed execution-queue, Execution).
type execution struct {
	ID              string  `json:"id"`
	AgentName       string  `json:"agent_name"`
	Source          string  `json:"source"`
	SourceAgent     *string `json:"source_agent"`
	SourceUserID    *string `json:"source_user_id"`
	SourceUserEmail *string `json:"source_user_email"`
	Message         string  `json:"message"`
	QueuedAt        stamp   `json:"queued_at"`
	StartedAt       *stamp  `json:"started_at"`
}

// stamp is a time as Python writes it: with a zone, or without one, which
// means UTC.
type stamp struct{ time.Time }

func (s *stamp) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil || text == "" {
		return err
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if t, err := time.Parse(layout, text); err == nil {
			s.Time = t.UTC().Truncate(time.Millisecond)
			return nil
		}
	}
	return fmt.Errorf("%q is not a time", text)
}

// executionQueue reads the keys of an execution queue and leaves them
// unchanged.
func executionQueue(rawURL string) Source {
	return Source{What: "the Redis keys of an execution queue", Read: func(ctx context.Context, to Taker) error {
		c, err := connect(ctx, rawURL)
		if err != nil {
			return err
		}
		defer c.Close()
		keys, err := keysOf(ctx, c, 0)
		if err != nil {
			return fmt.Errorf("cannot read from redis: %w", err)
		}
		for _, key := range keys {
			values, err := valuesOf(ctx, c, key, 0)
			if err != nil {
				return fmt.Errorf("cannot read %s: %w", key, err)
			}
			for i, v := range values {
				t, why, err := executionTask(key, v)
				if err != nil {
					return err
				}
				if why != "" {
					to.Bad(fmt.Sprintf("%s[%d]", key, i), why)
					continue
				}
				if err := to.Task(t); err != nil {
					return err
				}
			}
		}
		return nil
	}}
}

func connect(ctx context.Context, rawURL string) (rueidis.Client, error) {
	opt, err := rueidis.ParseURL(rawURL)
	if err != nil {
		return nil, fmt.Errorf("the redis URL cannot be read: want redis://user:password@host:6379/0") // its text may contain a password
	}
	opt.DisableCache, opt.ForceSingleClient = true, true
	if end, bounded := ctx.Deadline(); bounded {
		opt.Dialer.Timeout, opt.ConnWriteTimeout = time.Until(end), time.Until(end)
	}
	c, err := rueidis.NewClient(opt)
	if err != nil {
		host := "the server"
		if u, bad := url.Parse(rawURL); bad == nil {
			host = u.Host
		}
		return nil, fmt.Errorf("cannot connect to redis at %s: %w", host, err)
	}
	return c, nil
}

// Limits of LeftInRedis.
const (
	lookPages  = 1000 // with 1000 keys of the server each
	lookValues = 100  // of each list, those that are served first
)

var errTooMany = errors.New("there are too many keys to look at all")

// LeftInRedis returns a key of an execution queue with an execution that is not
// known yet; "" if there is none. It reads no more than 1,000,000 key names, and
// 100 values of each list. An error says that it has not seen everything.
func LeftInRedis(ctx context.Context, rawURL string, known func(*api.ExportedTask) (bool, error)) (key string, err error) {
	c, err := connect(ctx, rawURL)
	if err != nil {
		return "", err
	}
	defer c.Close()
	keys, unseen := keysOf(ctx, c, lookPages)
	for _, key := range keys {
		values, err := valuesOf(ctx, c, key, lookValues)
		if err != nil {
			unseen = fmt.Errorf("cannot read %s: %w", key, err)
			continue
		}
		for _, v := range values {
			t, why, err := executionTask(key, v)
			if err != nil || why != "" {
				continue // an import does not take it
			}
			if is, err := known(&t); err != nil || !is {
				return key, err
			}
		}
	}
	return "", unseen
}

// keysOf lists the keys, running executions first. It requests at most this
// number of pages, 0: all; if there are more, it also returns errTooMany.
func keysOf(ctx context.Context, c rueidis.Client, pages int) (keys []string, err error) {
	found := map[string]bool{}
	for cursor, asked := uint64(0), 1; ; asked++ {
		page, scanned := c.Do(ctx, c.B().Scan().Cursor(cursor).Match("agent:*").Count(1000).Build()).AsScanEntry()
		if scanned != nil {
			return nil, scanned
		}
		for _, key := range page.Elements {
			if strings.HasPrefix(key, keyRunning) || strings.HasPrefix(key, keyQueue) {
				found[key] = true
			}
		}
		if cursor = page.Cursor; cursor == 0 {
			break
		}
		if asked == pages {
			err = errTooMany
			break
		}
	}
	keys = make([]string, 0, len(found))
	for key := range found {
		keys = append(keys, key)
	}
	sort.Slice(keys, func(i, j int) bool {
		a, b := strings.HasPrefix(keys[i], keyRunning), strings.HasPrefix(keys[j], keyRunning)
		return a && !b || a == b && keys[i] < keys[j]
	})
	return keys, err
}

// valuesOf reads a key. Of a list it returns the tail first, which is served
// first, and at most most values, 0: all.
func valuesOf(ctx context.Context, c rueidis.Client, key string, most int64) ([]string, error) {
	if strings.HasPrefix(key, keyRunning) {
		v, err := c.Do(ctx, c.B().Get().Key(key).Build()).ToString()
		if rueidis.IsRedisNil(err) {
			return nil, nil // it ended in the meantime
		}
		return []string{v}, err
	}
	list, err := c.Do(ctx, c.B().Lrange().Key(key).Start(-most).Stop(-1).Build()).AsStrSlice()
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list, err
}

func executionTask(key, value string) (t api.ExportedTask, why string, err error) {
	var e execution
	if err := json.Unmarshal([]byte(value), &e); err != nil {
		return t, "it is not an execution: " + err.Error(), nil //nolint:nilerr // reported and skipped: the others are imported
	}
	agent, running := strings.CutPrefix(key, keyRunning)
	if !running {
		agent = strings.TrimPrefix(key, keyQueue)
	}
	switch {
	case e.ID == "" || e.Message == "" || e.QueuedAt.IsZero():
		return t, "it has no id, message or queued_at", nil
	case !signalbox.ValidName(agent):
		return t, fmt.Sprintf("%q cannot be the name of an agent", agent), nil
	}
	t = plain(signalbox.ImportExecutionQueue, e.ID, e.QueuedAt.Time)
	t.Queue, t.Source = signalbox.AgentQueue(agent), sourceOf(e.Source)
	if e.SourceUserEmail != nil {
		t.OwnerEmail = *e.SourceUserEmail
	}
	if running {
		t.State, t.Agent = string(signalbox.Working), agent
		if e.StartedAt != nil {
			t.StartedAt, t.DispatchedAt = &e.StartedAt.Time, &e.StartedAt.Time
		}
	}
	return t, "", request(&t, signalbox.Request{Prompt: e.Message})
}
