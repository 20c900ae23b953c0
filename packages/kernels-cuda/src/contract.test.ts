import { contractSuite, whyUnavailable } from "@opt/testkit";
import { openCudaBackend } from "./backend";
import { builtRules } from "./generate/rules";

const open = async () => openCudaBackend();
contractSuite({ name: "cuda", open, dtypes: ["f32", "f64"], rules: builtRules, skip: await whyUnavailable(open) });
