/** Makes the local engine known. Its code is loaded where `opt-run` started this process, and nowhere else. */
import { registerEngine } from "../engine/registry";
import { ownPlace } from "./job";

ownPlace(); // now: what the program starts before it connects is no rank either

registerEngine({
  name: "local",
  rank: 10,
  command: "npx opt-run -n 4 train.js",
  isPresent: () => ownPlace() !== undefined,
  open: async (timeout) => (await import("./engine")).openLocal(timeout),
});
