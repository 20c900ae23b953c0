/** Rules that pack and unpack state. One of their buffers is packed, so devices need no other kernels for it. */
import { defineRule } from "../../rule/rule";

export const PACK = /* @__PURE__ */ defineRule({
  name: "pack",
  buffers: ["value", "state"],
  scalars: [],
  update: ({ value }) => ({ state: value }),
});

export const UNPACK = /* @__PURE__ */ defineRule({
  name: "unpack",
  buffers: ["value", "state"],
  scalars: [],
  update: ({ state }) => ({ value: state }),
});
