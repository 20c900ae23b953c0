/** The tasks of the leaderboard, by name. */
import { task as clicks } from "./clicks";
import { task as digits } from "./digits";
import { task as poisson } from "./poisson";
import { task as sonnets } from "./sonnets";
import type { Task } from "./task";

export const tasks = { sonnets, digits, poisson, clicks } as const satisfies Record<string, Task>;
export type TaskName = keyof typeof tasks;
