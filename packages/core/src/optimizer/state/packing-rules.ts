/** What packs and unpacks state: rules of which one buffer is packed, so that devices need nothing more for it. */
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
