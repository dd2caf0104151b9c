package director

import (
	"net/http"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// users is GET /api/users.
func (d *Director) users(w http.ResponseWriter, _ *http.Request) error {
	out := api.Users{Users: []api.User{}}
	for _, u := range d.identity.Users() {
		out.Users = append(out.Users, userView(u))
	}
	d.answer(w, http.StatusOK, out)
	return nil
}

func userView(u signalbox.User) api.User {
	return api.User{ID: u.ID, Email: u.Email, Role: string(u.Role), Agents: u.Agents, Disabled: u.Disabled, CreatedAt: u.CreatedAt}
}

// putUser is PUT /api/users/{id}.
func (d *Director) putUser(w http.ResponseWriter, r *http.Request) error {
	var req api.PutUser
	if err := decode(w, r, &req, false); err != nil {
		return err
	}
	before := d.userWords(r.PathValue("id"))
	u, created, err := d.identity.PutUser(r.Context(), identity.PutUser{
		ID: r.PathValue("id"), Email: req.Email, Password: req.Password, Role: signalbox.Role(req.Role), Agents: req.Agents, Disabled: req.Disabled,
	})
	if err != nil {
		return err
	}
	if err := d.audit(r, signalbox.Audit{
		EventType: "user", Action: "put", Resource: "user:" + u.ID,
		Details: details(map[string]any{"created": created, "before": before, "after": d.userWords(u.ID), "password_set": req.Password != ""}),
	}); err != nil {
		return err
	}
	d.answer(w, http.StatusOK, userView(u))
	return nil
}

// userWords is what the audit log says of a user: nothing where there is none.
func (d *Director) userWords(id string) map[string]any {
	for _, u := range d.identity.Users() {
		if u.ID == id {
			return map[string]any{"email": u.Email, "role": u.Role, "agents": u.Agents, "disabled": u.Disabled}
		}
	}
	return nil
}

// removeUser is DELETE /api/users/{id}.
func (d *Director) removeUser(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if err := d.identity.RemoveUser(r.Context(), id); err != nil {
		return err
	}
	if err := d.audit(r, signalbox.Audit{EventType: "user", Action: "remove", Resource: "user:" + id}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
