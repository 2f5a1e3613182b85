"""What each rank's lateness costs the job, and why it is late; without any clock but each rank's own."""
