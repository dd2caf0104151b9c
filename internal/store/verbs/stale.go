package verbs

import (
	"context"
	"slices"
	"strconv"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

type keepStale struct {
	id   string
	said signalbox.Stale
}

// KeepStale stores the final report of a void execution, by its fence.
func (s *Store) KeepStale(ctx context.Context, id string, said signalbox.Stale) error {
	said.Result = *said.Result.Clone()
	return s.do(ctx, &keepStale{id, said}, len(said.Result.Output)+len(said.Result.Tail))
}

func (v *keepStale) run(x *workingSet) error {
	r, err := x.find(v.id)
	if err != nil {
		return err
	}
	kept, err := decodeDoc(x.doc(KindStale, staleID(r.task.Seq)), pack.ReadStales)
	if err != nil {
		return err
	}
	if x.missing {
		return errMissing
	}
	var list []signalbox.Stale
	if kept != nil {
		list = slices.Clone(*kept)
	}
	list, used := store.AddStale(list, r.task, v.said)
	if used.Spent != (signalbox.Spent{}) {
		sum := x.usageRow(&used)
		if x.missing {
			return errMissing
		}
		x.use(sum, used)
	}
	x.put(KindStale, staleID(r.task.Seq), 0, pack.Stales(list), nil)
	return nil
}

func staleID(seq int64) string { return strconv.FormatInt(seq, 10) }

// Stales lists the final reports of void executions of a task, by fence.
func (s *Store) Stales(ctx context.Context, id string) ([]signalbox.Stale, error) {
	w, err := s.whole(ctx, id)
	if err != nil {
		return nil, err
	}
	return stalesOf(&w)
}

func stalesOf(w *Whole) ([]signalbox.Stale, error) {
	if w.Stales == nil {
		return nil, nil
	}
	return pack.ReadStales(w.Task.ID, w.Stales)
}
