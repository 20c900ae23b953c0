/** `@opt/checkpoint/plan`: layouts, boxes and plans on their own, for simulations. Nothing here touches a file. */
export type { Box } from "./layout/box";
export { defaultLayout, type LaidOutTensor, type Layout, ranksOf } from "./layout/layout";
export { boxesOf, boxesOfRank, type Placement, placementsOf } from "./layout/placements";
export { type PlannedTensor, planTensor, SourcePlan } from "./plan/plan";
