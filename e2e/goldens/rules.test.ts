/** The rules of every optimizer on the js device: core's own tests know none of them. */
import { openJsBackend } from "@opt/core/backend";
import { rulesSuite } from "@opt/testkit";
import { workspaceRules } from "@opt/testkit/rules";

const rules = await workspaceRules();
rulesSuite({ name: "js", open: async () => openJsBackend(), dtypes: ["f32", "f64"], rules });
