/** The rules of every optimizer of the workspace: kernel builds and device tests find them, and name no algorithm. */
import type { Rule } from "@opt/core";
import { optimizerPackages } from "./workspace-optimizers";

/** All of their rules. */
export async function workspaceRules(): Promise<Rule[]> {
  return (await optimizerPackages()).flatMap(({ rules }) => rules);
}
