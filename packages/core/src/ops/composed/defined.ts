/** Every function that `defineFunction` made: a line here exports it, and all tables know it. */

export type { FunctionDefinition } from "../define-function";
export { median, quantile } from "./order";
export { cdist, cross, kron, outer, tensordot, trace, vdot } from "./pairs";
export { diag, glu, meshgrid, repeatInterleave, rot90, unbind } from "./parts";
