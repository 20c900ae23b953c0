import { contractSuite } from "@opt/testkit";
import { optimizerRules } from "@opt/testkit/rules";
import { openJsBackend } from "../backend";

contractSuite({ name: "js", open: async () => openJsBackend(), dtypes: ["f32", "f64"], rules: optimizerRules });
