"""Pictures of a workflow: terminal, Mermaid, DOT, SVG and JSON, all from one `Drawing` of `render.model`."""
