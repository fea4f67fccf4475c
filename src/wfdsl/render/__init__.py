"""Pictures of workflows and runs in every format, all from one `Drawing` of `render.model`."""
