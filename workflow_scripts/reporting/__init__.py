"""Tables, figures and the page about a study."""
