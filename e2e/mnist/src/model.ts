import type { Generator } from "@opt/core";
import { Linear, ReLU, Sequential } from "@opt/nn";
import { PIXELS } from "./data";

/** 784 - hidden - 10, with ReLU between. */
export function digitNetwork(hidden: number, generator?: Generator): Sequential {
  return new Sequential(new Linear(PIXELS, hidden, { generator }), new ReLU(), new Linear(hidden, 10, { generator }));
}
