/** `@opt/train/chart`: the charts of `plot`, as the project's own pages, reports and pictures use them. */

export type { Axis, Chart, Series } from "./chart/chart";
export { type CurveAxes, chartsOf, type Size, stacked } from "./chart/curves";
export { type Box, boxOf, draw, sampleLine } from "./chart/draw";
export { format } from "./chart/scale";
export { describe, placesOf, readAt } from "./chart/words";
