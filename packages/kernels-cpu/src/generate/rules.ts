/** The rules that are compiled ahead: every variant of every algorithm package of the workspace, and those that tests use. */
import type { Rule } from "@opt/core";
import { workspaceRules } from "@opt/testkit/rules";
import { dividedRoots, everyOp } from "../testing/rules";

export const builtRules: readonly Rule[] = [...(await workspaceRules()), everyOp, dividedRoots];
