/** What the tests of all packages share. Importing it registers the matcher `toAgreeWith`. */
import "./numbers/matcher";

export type { ContractTolerances } from "./contract/context";
export { type ContractRow, contractSuite, whyUnavailable } from "./contract/suite";
export { expectCode } from "./expect-code";
export type { Numbers, Tolerance } from "./numbers/compare";
export { compareNumbers } from "./numbers/compare";
export { Random } from "./numbers/random";
export {
  type SeededBuffersOptions,
  type SeededOptions,
  seededArray,
  seededBuffers,
  seededIndices,
  seededScalars,
} from "./numbers/seeded";
export { SPECIALS } from "./numbers/specials";
export { hexadecimal, ulpDistance } from "./numbers/ulp";
