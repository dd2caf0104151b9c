package store

import "github.com/signalbox-ai/signalbox"

// The refusals of schedules, which all stores word alike.

// NoSchedule says that there is no schedule with an id.
func NoSchedule(id string) error {
	return signalbox.Errorf(signalbox.CodeNotFound, "there is no schedule %q: it never existed or has been removed", id)
}

// ScheduleNameTaken says that another schedule has the name.
func ScheduleNameTaken(name, other string) error {
	return &signalbox.Error{Code: signalbox.CodeConflict, Field: "name",
		Message: "schedule " + other + " is called " + name + " already: choose another name, or change that one"}
}

// TooManySchedules says that there is no room for one more.
func TooManySchedules() error {
	return signalbox.Errorf(signalbox.CodeConflict, "there are %d schedules already, which is the most: remove some first", signalbox.MaxSchedules)
}

// RunDecided says that a firing is no longer open.
func RunDecided(schedule, id string) error {
	return signalbox.Errorf(signalbox.CodeConflict, "firing %s of schedule %s is decided already: it stays as it is", id, schedule)
}
