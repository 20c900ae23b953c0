/** `@opt/checkpoint/plan`: layouts, boxes and plans on their own, for simulations. Nothing here touches a file. */
export type { Box } from "./layout/box";
export {
  boxesOf,
  boxesOfRank,
  defaultLayout,
  type LaidOutTensor,
  type Layout,
  type Placement,
  placementsOf,
  ranksOf,
} from "./layout/layout";
export { type PlannedTensor, planTensor, SourcePlan } from "./plan/plan";
