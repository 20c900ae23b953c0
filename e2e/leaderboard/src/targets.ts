/** The losses to which steps are counted. No run depends on them. */
import type { TaskName } from "./tasks";

export const TARGETS: Readonly<Record<TaskName, number>> = { sonnets: 2.55, digits: 0.4, poisson: 1e-4, clicks: 0.53 };
