package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/execution/push"
)

// run serves until ctx ends, then drains: no new claims, a wait for what
// runs, then it is left to its agents, or stopped, as configured. A second
// signal cuts the wait short.
func (s *service) run(ctx context.Context, ready func(ctx context.Context) error) error {
	if err := s.enter(ctx); err != nil { // before anything is done that another director could be at
		return err
	}
	for _, a := range s.cfg.Agents {
		if err := s.putConfigured(ctx, a); err != nil {
			return err
		}
	}
	if err := s.tools.start(ctx); err != nil { // before the agents, whose runs call them
		return err
	}
	if err := s.push.Start(ctx); err != nil {
		return err
	}
	defer s.push.Stop()
	if err := s.pull.Start(ctx); err != nil {
		return err
	}
	defer s.pull.Stop()
	s.others.relisted()
	if err := s.jobs.start(ctx); err != nil {
		return err
	}
	defer s.jobs.close()
	if s.cfg.Discover != (config.PortRange{}) {
		go s.push.Discover(ctx, push.Ports{First: s.cfg.Discover.First, Last: s.cfg.Discover.Last})
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	served := make(chan error, 1)
	go func() { served <- s.director.Serve(serving, s.listener) }()
	if err := announce(s.cfg, s.url); err != nil {
		s.log.Warn("the command line will not find this director by itself", "error", err)
	}
	defer withdraw(s.url)
	s.log.Info("director ready", "url", s.url, "data", s.cfg.Data, "store", s.store.Info().Kind, "durability", s.store.Info().Durability, "open", s.identity.Open())
	if err := ready(ctx); err != nil {
		return err
	}
	select {
	case err := <-served:
		return err
	case err := <-s.superseded():
		stop()
		return errors.Join(err, <-served)
	case <-ctx.Done():
	}
	s.drain(ctx)
	stop()
	return <-served
}

// drain lets what runs come to its end, for as long as the grace lasts.
func (s *service) drain(ctx context.Context) {
	s.director.SetDraining(true)
	s.pull.Drain()
	impatient, done := again(context.WithoutCancel(ctx))
	defer done()
	grace, cancel := context.WithTimeout(impatient, s.cfg.Grace)
	defer cancel()
	s.log.Info("stopping: no new claims", "grace", s.cfg.Grace)
	var group sync.WaitGroup
	group.Go(func() { s.tools.tasks.Drain(grace) }) // what is left of it is ended with the process, by its tools' restart policy
	group.Go(func() { s.handOver(grace) })
	left := s.push.Drain(grace)
	group.Wait()
	if left > 0 && s.cfg.OnShutdown == "stop" {
		s.push.CancelRunning(impatient, "the director's shutdown")
		ending, cancel := context.WithTimeout(impatient, 10*time.Second)
		defer cancel()
		left = s.push.Drain(ending)
	}
	if left > 0 {
		s.log.Warn("tasks are left to their agents; the next director takes them up", "tasks", left)
	}
}
