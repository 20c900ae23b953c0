/** The rules of every optimizer on the js device: core's own tests know none of them. */
import { adamRules } from "@opt/adam-amsgrad/rules";
import { openJsBackend } from "@opt/core/backend";
import { nadamRules } from "@opt/nadam/rules";
import { rulesSuite } from "@opt/testkit";

const rules = [...nadamRules, ...adamRules];
rulesSuite({ name: "js", open: async () => openJsBackend(), dtypes: ["f32", "f64"], rules });
