package director

import (
	"context"
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Schedules is the scheduler as the director asks it; *schedule.Scheduler does.
// ref is an id or a name; what does not exist is CodeNotFound, and what comes
// from the configuration is not changed here (CodeConflict), but for
// SetEnabled and Trigger.
type Schedules interface {
	// All lists the schedules by name.
	All(ctx context.Context) ([]signalbox.Schedule, error)
	Get(ctx context.Context, ref string) (signalbox.Schedule, error)
	// Add stores a new schedule, whose ID and times are made here. Errors name
	// the field.
	Add(ctx context.Context, s signalbox.Schedule, by string) (signalbox.Schedule, error)
	// Edit stores what a person can change of s by its ID.
	Edit(ctx context.Context, s signalbox.Schedule, by string) (signalbox.Schedule, error)
	Remove(ctx context.Context, ref, by string) error
	SetEnabled(ctx context.Context, ref string, on bool, by string) (signalbox.Schedule, error)
	// Trigger fires a schedule now. It returns when the firing is decided, or
	// held; CodeConflict while a firing of it is open.
	Trigger(ctx context.Context, ref, by string) (signalbox.ScheduleRun, error)
	// Runs lists the newest firings of a schedule, at most limit.
	Runs(ctx context.Context, id string, limit int) ([]signalbox.ScheduleRun, error)
	// Next returns the instants of a schedule at which it will fire, n at most:
	// none while it is disabled. Due is its next instant, which lies in the
	// past where nobody fired it.
	Next(s signalbox.Schedule, n int) []time.Time
	Due(s signalbox.Schedule) time.Time
	// Zone is the time zone of schedules that name none.
	Zone() string
}

var errBeingBuilt = signalbox.Errorf(signalbox.CodeUnsupported, "being built")

func (d *Director) schedules(http.ResponseWriter, *http.Request) error       { return errBeingBuilt }
func (d *Director) createSchedule(http.ResponseWriter, *http.Request) error  { return errBeingBuilt }
func (d *Director) schedule(http.ResponseWriter, *http.Request) error        { return errBeingBuilt }
func (d *Director) putSchedule(http.ResponseWriter, *http.Request) error     { return errBeingBuilt }
func (d *Director) removeSchedule(http.ResponseWriter, *http.Request) error  { return errBeingBuilt }
func (d *Director) enableSchedule(http.ResponseWriter, *http.Request) error  { return errBeingBuilt }
func (d *Director) disableSchedule(http.ResponseWriter, *http.Request) error { return errBeingBuilt }
func (d *Director) triggerSchedule(http.ResponseWriter, *http.Request) error { return errBeingBuilt }
func (d *Director) executions(http.ResponseWriter, *http.Request) error      { return errBeingBuilt }
func (d *Director) checkCron(http.ResponseWriter, *http.Request) error       { return errBeingBuilt }
