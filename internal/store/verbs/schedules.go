package verbs

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

type putSchedule struct {
	row   signalbox.Schedule
	runs  []signalbox.ScheduleRun
	entry signalbox.Entry
	got   signalbox.Schedule
}

// PutSchedule stores a schedule with its runs.
func (s *Store) PutSchedule(ctx context.Context, row signalbox.Schedule, runs []signalbox.ScheduleRun, e signalbox.Entry) (signalbox.Schedule, error) {
	v := &putSchedule{row: row.Clone(), runs: runs, entry: e}
	if err := s.do(ctx, v, len(row.Prompt)+len(row.Description)); err != nil {
		return signalbox.Schedule{}, err
	}
	return v.got, nil
}

func (v *putSchedule) run(x *workingSet) error {
	row := v.row.Clone()
	stored, err := decodeDoc(x.doc(kindSchedule, row.ID), readSchedule)
	if err != nil {
		return err
	}
	named := nameOf(x.doc(kindScheduleName, row.Name))
	count := x.doc(kindCount, countSchedules)
	var runs *runList
	if len(v.runs) > 0 {
		if runs, err = x.runs(row.ID); err != nil {
			return err
		}
	}
	if x.missing {
		return errMissing
	}
	if err := v.refused(stored, &row, named, count, runs); err != nil {
		return err
	}
	if stored == nil {
		x.countSchedules(count, 1)
	} else if stored.Name != row.Name {
		x.drop(kindScheduleName, stored.Name)
	}
	row.Rev++
	if named != row.ID {
		x.put(kindScheduleName, row.Name, 0, nameBody(row.ID), nil)
	}
	x.put(kindSchedule, row.ID, row.Rev, scheduleBody(&row), &row)
	if runs != nil {
		runs.keep(x, v.runs)
	}
	if v.entry.Kind != "" {
		x.note(v.entry)
	}
	v.got = row.Clone()
	return nil
}

// refused checks everything before anything is stored.
func (v *putSchedule) refused(stored, row *signalbox.Schedule, named string, count *docRow, runs *runList) error {
	was := int64(0)
	if stored != nil {
		was = stored.Rev
	}
	if row.Rev != was || (stored == nil) != (row.Rev == 0) {
		return store.ErrStale
	}
	if named != "" && named != row.ID {
		return store.ScheduleNameTaken(row.Name, named)
	}
	if stored == nil && counted(count) >= signalbox.MaxSchedules {
		return store.TooManySchedules()
	}
	seen := map[string]bool{}
	for i := range v.runs {
		id := v.runs[i].ID
		if seen[id] || runs.decided(id) {
			return store.RunDecided(row.ID, id)
		}
		seen[id] = true
	}
	return nil
}

type deleteSchedule struct {
	id    string
	entry signalbox.Entry
	was   bool
}

// DeleteSchedule deletes a schedule with its runs.
func (s *Store) DeleteSchedule(ctx context.Context, id string, e signalbox.Entry) (bool, error) {
	v := &deleteSchedule{id: id, entry: e}
	if err := s.do(ctx, v, 0); err != nil {
		return false, err
	}
	return v.was, nil
}

// run deletes a schedule, even if its row is damaged: then its name stays taken until another schedule wants
// it.
func (v *deleteSchedule) run(x *workingSet) error {
	doc := x.doc(kindSchedule, v.id)
	count := x.doc(kindCount, countSchedules)
	runs := x.page(kindRuns + v.id)
	if x.missing {
		return errMissing
	}
	if v.was = doc != nil; !v.was {
		return nil
	}
	if stored, err := decodeDoc(doc, readSchedule); err == nil {
		x.drop(kindScheduleName, stored.Name)
	}
	for _, r := range runs {
		x.dropRun(v.id, r.doc.ID)
	}
	x.drop(kindSchedule, v.id)
	x.countSchedules(count, -1)
	if v.entry.Kind != "" {
		x.note(v.entry)
	}
	return nil
}

// The doc of a schedule is its revision, the length of its name, the name, and the rest.
func scheduleBody(s *signalbox.Schedule) []byte {
	b := binary.AppendVarint(nil, s.Rev)
	b = binary.AppendUvarint(b, uint64(len(s.Name)))
	b = append(b, s.Name...)
	return append(b, pack.Schedule(s)...)
}

func readSchedule(id string, body []byte) (signalbox.Schedule, error) {
	rev, n := binary.Varint(body)
	size, m := uint64(0), 0
	if n > 0 {
		size, m = binary.Uvarint(body[n:])
	}
	if n <= 0 || m <= 0 || size > uint64(len(body)-n-m) { //nolint:gosec // a length
		return pack.ReadSchedule(id, nil) // returns the error that it is damaged
	}
	rest := body[n+m:]
	s, err := pack.ReadSchedule(id, rest[size:])
	s.Rev, s.Name = rev, string(rest[:size])
	return s, err
}

const countSchedules = "schedules"

func (x *workingSet) countSchedules(count *docRow, more int) {
	n := counted(count) + more
	x.put(kindCount, countSchedules, int64(n), []byte{1}, nil)
}

func counted(count *docRow) int {
	if count == nil {
		return 0
	}
	return int(count.doc.Sort)
}

// Schedules lists all schedules by name.
func (s *Store) Schedules(ctx context.Context) ([]signalbox.Schedule, error) {
	list, err := readAll(ctx, s, kindSchedule, readSchedule)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b signalbox.Schedule) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// Schedule returns a schedule by id.
func (s *Store) Schedule(ctx context.Context, id string) (signalbox.Schedule, error) {
	row, err := readDoc(ctx, s, kindSchedule, id, readSchedule)
	if err != nil {
		return signalbox.Schedule{}, err
	}
	if row == nil {
		return signalbox.Schedule{}, store.NoSchedule(id)
	}
	return *row, nil
}
