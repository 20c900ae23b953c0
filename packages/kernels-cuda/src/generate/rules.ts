/** The rules that are compiled ahead: every variant of every algorithm package of the workspace, and the one that tests use. */
import type { Rule } from "@opt/core";
import { workspaceRules } from "@opt/testkit/rules";
import { everyOp } from "../testing/rules";

export const builtRules: readonly Rule[] = [...(await workspaceRules()), everyOp];
