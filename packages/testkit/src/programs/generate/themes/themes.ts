/** What small programs are about: each theme is a place where features meet. */
import type { Draft } from "../draft";
import { chain, penalty } from "./chains";
import { bare, batching, longRows, ties } from "./extents";
import { meeting } from "./meeting";
import { following, padding, partly, replacing, switching, tying } from "./networks";
import { labelling, resizing, scanning, whole } from "./numbers";
import { attending, recurring } from "./sequences";
import type { Theme } from "./theme";
import { accumulating, again, hooked } from "./training";
import { indexing, moving, overwriting, writing } from "./writing";

/** Some more often than others. They are a prime number, so that seeds in a row have each theme on each device. */
export const THEMES: readonly ((draft: Draft) => Theme)[] = [
  ...[penalty, penalty, penalty, chain, chain, meeting, meeting, whole, scanning, resizing, labelling],
  ...[writing, indexing, indexing, moving, overwriting, overwriting],
  ...[following, padding, switching, replacing, partly, tying],
  ...[attending, attending, attending, recurring, recurring, longRows, longRows, ties, bare, bare, batching],
  ...[accumulating, again, hooked],
];
