/** The engine of a process that no launcher started: one rank, which talks to no one. */
import { OptError } from "@opt/core";
import type { Engine } from "./engine";
import { registerEngine } from "./registry";

const nobody = async () => {
  throw new OptError("INTERNAL", "single", "one rank sends no messages.");
};

const single: Engine = { name: "single", rank: 0, size: 1, send: nobody, receive: nobody, close: async () => {} };

registerEngine({
  name: "single",
  rank: 0,
  command: "node train.js",
  isPresent: () => true,
  open: async () => single,
});
