// Package doctor looks at what a director stands on and cannot see by itself:
// the rows of its store, its data folder, and the limits that hold for the
// programs it starts. Each look has the shape of director.DoctorCheck, and
// cmd/signalbox hands it to the director.
package doctor
