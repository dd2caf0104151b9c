// The actions on the landing of work.
import { del, post } from "../lib/api.js";
import { shortId } from "./tasklink.js";
import { toast } from "./toast.js";

const address = (id) => `/api/queue/${encodeURIComponent(id)}/land`;

// land starts landing a task's work on a branch; without body with the settings as before.
export const land = (id, body = {}) => post(address(id), body);
export const dropLanding = (id) => del(address(id));

// told does one of these, and shows the outcome.
const told = (does, done, not) => async (id) => {
  try {
    await does(id);
    toast(`${shortId(id)} ${done}.`);
  } catch (error) {
    toast(`${shortId(id)} ${not}: ${error.message}.`, "bad");
  }
};
export const landById = told(land, "lands next", "does not land");
export const dropById = told(dropLanding, "does not land", "is not dropped");
