// What can be done about work that is to land.
import { del, post } from "../lib/api.js";
import { shortId } from "./tasklink.js";
import { toast } from "./toast.js";

const address = (id) => `/api/queue/${encodeURIComponent(id)}/land`;

// land asks for the work of a task on a branch; without body for the same as before.
export const land = (id, body = {}) => post(address(id), body);
export const dropLanding = (id) => del(address(id));

// told does one of these, and says how it went.
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
