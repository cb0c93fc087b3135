"""What slash commands do: functions that take the session and return data, and know no terminal."""
