/** Makes the local engine known. Its code is loaded where `opt-run` started this process, and nowhere else. */
import { registerEngine } from "../engine/registry";
import { ownPlace } from "./job";

registerEngine({
  name: "local",
  rank: 10,
  command: "npx opt-run -n 4 train.js",
  isPresent: () => ownPlace() !== undefined,
  open: async () => (await import("./engine")).openLocal(),
});
